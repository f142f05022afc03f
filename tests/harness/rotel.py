"""Rotel, a collector of OTLP written in Rust: it decodes what it is sent, and sends it on in its own encoding."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from harness.server_thread import wait_until
from harness.sockets import accepts, free_port


def find_rotel() -> Path:
    """Returns the program of the package. Without it the test is skipped; it fails where TIDEGATE_TESTS_NEED_PROGRAMS
    is set.
    """
    found = importlib.util.find_spec("rotel")
    if found is not None and found.origin is not None:
        return Path(found.origin).with_name("rotel-agent")
    if os.environ.get("TIDEGATE_TESTS_NEED_PROGRAMS"):
        pytest.fail("the package rotel is not installed")
    pytest.skip("the package rotel is not installed")


class Rotel:
    """Used as a context manager, accepting when entered. Sends everything on to `url`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.port = free_port()
        self._log = folder / "rotel.log"
        self._command = [str(find_rotel()), "start", "--otlp-http-endpoint", f"127.0.0.1:{self.port}"]
        self._command += ["--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}", "--pid-file", str(folder / "rotel.pid")]
        self._command += ["--exporter", "otlp", "--otlp-exporter-endpoint", url, "--otlp-exporter-protocol", "http"]
        self._command += ["--batch-timeout", "20ms"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Rotel":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Starts it, or starts it again, at the same port."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: accepts(self.port) or self._has_ended(), "Rotel accepts connections", 30)
        assert not self._has_ended(), self._log.read_text()

    def kill(self) -> None:
        """SIGKILL. Harmless where it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def _has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None
