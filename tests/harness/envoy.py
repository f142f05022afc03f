"""A real Envoy in front of a server under test."""

import subprocess
from pathlib import Path

from harness.programs import find_program
from harness.server_thread import wait_until
from harness.sockets import accepts


class Envoy:
    """Used as a context manager, accepting when entered. `told` is the whole configuration, listening on `port`."""

    def __init__(self, folder: Path, told: str, port: int) -> None:
        self.port = port
        self._log = folder / "envoy.log"
        self._file = folder / "envoy.yaml"
        self._file.write_text(told)
        self._command = [find_program("envoy"), "--config-path", str(self._file), "--disable-hot-restart"]
        self._command += ["--concurrency", "1", "--log-level", "warning", "--log-path", str(self._log)]
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        """Has Envoy judge the configuration; fails with what it says."""
        done = subprocess.run([*self._command, "--mode", "validate"], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode() + self._log.read_text()

    def __enter__(self) -> "Envoy":
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: accepts(self.port), "Envoy accepts connections")
        except AssertionError:
            self.__exit__()
            raise AssertionError(self._log.read_text()) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
