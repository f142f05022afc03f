"""A redis-server of a test's own, on a Unix socket in a temporary folder."""

import socket
import subprocess
import tempfile
from pathlib import Path

from harness.programs import find_program
from harness.server_thread import wait_until


class RedisServer:
    """Used as a context manager. It keeps nothing on disk: stopped and started again it is empty. `options` are further
    ones of the command line.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._program = find_program("redis-server")
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self.socket_path = Path(self._folder.name) / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket_path}"

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                self._program,
                "--port",
                "0",
                "--unixsocket",
                str(self.socket_path),
                "--save",
                "",
                "--dir",
                self._folder.name,
                *self._options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "redis-server answers", 30)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None
        self.socket_path.unlink(missing_ok=True)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket_path))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith((b"+PONG", b"-NOAUTH", b"-MASTERDOWN"))
            except OSError:
                return False
