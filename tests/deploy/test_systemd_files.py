"""The unit: what systemd says of it, that it is true to the server, and that the server tells what it is waited for."""

import configparser
import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deployments import deployed, replaced, settings_in
from harness.end_times import longest_end_s
from harness.programs import find_program
from harness.server_process import ServerProcess
from tidegate.cli.process_end import EXIT_USAGE
from tidegate.cli.service_manager import END_MARGIN_S, ServiceManager

PROGRAM = "/opt/tidegate/bin/tidegate"
MOST_EXPOSURE = 2.0
"""Of 10, as `systemd-analyze security` counts. A public server cannot be far below."""
DRAIN_S = 7.0


class _Repeated(dict[str, str]):
    """Keys may stand several times in a unit: their values are joined by line breaks."""

    def __setitem__(self, key: str, value: str) -> None:
        if key in self and isinstance(self[key], list) and isinstance(value, list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def service() -> dict[str, str]:
    parser = configparser.RawConfigParser(dict_type=_Repeated, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names keep their case
    parser.read_string(deployed("systemd/tidegate.service"))
    return dict(parser["Service"])


def environment() -> dict[str, str]:
    pairs = (line.partition("=") for line in service()["Environment"].splitlines())
    return {name: value for name, _, value in pairs}


def unit_here(folder: Path) -> Path:
    """The unit with a program that is on this machine, for systemd to judge."""
    file = folder / "tidegate.service"
    file.write_text(replaced(deployed("systemd/tidegate.service"), {PROGRAM: "/bin/true"}))
    return file


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [find_program("systemd-analyze"), "--no-pager", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    found = analyze("verify", str(unit_here(tmp_path)))
    assert (found.returncode, found.stderr) == (0, "")


def test_the_service_is_shut_in_as_far_as_a_server_can_be(tmp_path: Path) -> None:
    found = analyze("security", "--offline=true", str(unit_here(tmp_path)))
    exposure = re.search(r"exposure level for tidegate.service: ([0-9.]+)", found.stdout)
    assert exposure is not None, found.stdout + found.stderr
    assert float(exposure[1]) <= MOST_EXPOSURE


def test_the_settings_of_the_unit_are_ones_that_the_server_has() -> None:
    words = service()["ExecStart"].split()
    assert words[:3] == [PROGRAM, "serve", "--config"]
    settings = settings_in("systemd/tidegate.toml", environment())
    assert settings.server.state_dir == f"%S/{service()['StateDirectory']}"
    name = service()["LoadCredential"].partition(":")[0]
    assert settings.auth.admin_token_file == f"%d/{name}"
    assert environment()["HF_HOME"].startswith(f"%C/{service()['CacheDirectory']}/")
    assert f"u {service()['User']} " in deployed("systemd/tidegate.sysusers.conf")


def test_running_requests_have_all_of_their_time_before_systemd_kills() -> None:
    drain_s = settings_in("systemd/tidegate.toml").server.drain_timeout_s
    assert float(service()["TimeoutStopSec"]) >= drain_s + END_MARGIN_S
    assert longest_end_s() <= END_MARGIN_S
    assert service()["KillMode"] == "mixed", "the engine must live until running requests have finished"
    assert service()["RestartPreventExitStatus"] == str(EXIT_USAGE)


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(address.replace("@", "\0", 1))
        self._sock.settimeout(60.0)

    def hear(self) -> list[str]:
        return self._sock.recv(4096).decode().split("\n")

    def close(self) -> None:
        self._sock.close()


@pytest.fixture(params=["file", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "file" else f"@tidegate-test-{os.getpid()}-{tmp_path.name}"


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    running = Manager(address)
    yield running
    running.close()


def test_the_manager_is_told_in_its_own_words_and_children_are_not_asked_to(address: str, manager: Manager) -> None:
    variables = {"NOTIFY_SOCKET": address, "HOME": "/root"}
    told = ServiceManager(variables)
    assert variables == {"HOME": "/root"}
    told.tell_ready("http://127.0.0.1:8000")
    assert manager.hear() == ["READY=1", "STATUS=serving on http://127.0.0.1:8000"]
    told.tell_ending(60.0)
    assert manager.hear() == [
        "STOPPING=1",
        "STATUS=finishing running requests, at most 60 s",
        "EXTEND_TIMEOUT_USEC=90000000",
    ]


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/notify", "@nobody-listens-here"])
def test_a_manager_that_is_not_there_is_no_fault(address: str) -> None:
    told = ServiceManager({"NOTIFY_SOCKET": address} if address else {})
    told.tell_ready("http://127.0.0.1:8000")
    told.tell_ending(1.0)


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 2])
def test_the_server_says_when_it_is_ready_and_that_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    settings = {"server__drain_timeout_s": DRAIN_S, "server__workers": workers}
    heard = contextlib.closing(Manager(str(tmp_path / "notify")))
    with heard as manager, ServerProcess("scripted", **settings) as server:
        assert manager.hear() == ["READY=1", f"STATUS=serving on http://127.0.0.1:{server.port}"]
        server.signal(signal.SIGTERM)
        assert manager.hear()[0] == "STOPPING=1"
        assert server.wait() == 0
