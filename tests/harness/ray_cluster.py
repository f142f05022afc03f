"""A Ray cluster of one node for the tests of a file: a program of its own, on loopback, with its own folder and token.

Nothing of it is left: its processes are a session of their own, which is ended as a whole.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil

from harness.server_thread import wait_until

START_TIMEOUT_S = 180.0
_PORTS = (
    *("--port", "--node-manager-port", "--object-manager-port", "--ray-client-server-port"),
    *("--dashboard-agent-grpc-port", "--dashboard-agent-listen-port"),
    *("--runtime-env-agent-port", "--metrics-export-port"),
)
"""All of them given: otherwise Ray waits for files in which its parts say what they have chosen, and not for long."""


def ray_environment() -> dict[str, str]:
    """What a process sets before it loads Ray, so that it is quiet, on loopback, and let in."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


class RayClusterProcess:
    """Used as a context manager. `address` is what servers connect to. `environment` is in force meanwhile."""

    def __init__(self, num_cpus: int = 16) -> None:
        self._num_cpus = num_cpus
        self._stack = ExitStack()
        self.environment = ray_environment()
        self.folder = Path(tempfile.mkdtemp(prefix="tgray-"))  # short: Ray puts sockets into it
        self.address = ""

    def __enter__(self) -> "RayClusterProcess":
        source = str(Path(__file__).parents[2] / "src")
        self.environment["PYTHONPATH"] = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
        saved = dict(os.environ)
        os.environ.update(self.environment)
        self._stack.callback(_restore, saved)
        ports = free_ports(len(_PORTS))
        self.address = f"127.0.0.1:{ports[0]}"
        command = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", "--disable-usage-stats"]
        command += ["--node-ip-address=127.0.0.1", f"--num-cpus={self._num_cpus}", "--include-dashboard=false"]
        command += [f"--temp-dir={self.folder}", "--object-store-memory=100000000"]
        command += [f"{flag}={port}" for flag, port in zip(_PORTS, ports, strict=True)]
        log = self._stack.enter_context((self.folder / "start.log").open("wb"))
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            wait_until(self._is_up, "the cluster is up", START_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _is_up(self) -> bool:
        assert self._process.poll() is None, self.log()
        return "Ray runtime started" in self.log()

    def __exit__(self, *_: object) -> None:
        ours = psutil.Process(self._process.pid)
        children = ours.children(recursive=True)
        self._process.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs([ours, *children], timeout=10)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=10)
        self._process.wait()
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """What the cluster's start has said."""
        return (self.folder / "start.log").read_text("utf-8", "replace")


def free_ports(number: int) -> list[int]:
    """Returns ports of loopback that were free just now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _restore(saved: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(saved)
