"""A real nginx in front of a server under test, with nothing set but where its files are and what it is told."""

import socket
import subprocess
from pathlib import Path

from harness.programs import find_program
from harness.server_thread import wait_until

_FRAME = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {told}
}}
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Nginx:
    """Used as a context manager, accepting when entered. `told` is the content of `http {}`, listening on `port`."""

    def __init__(self, folder: Path, told: str, port: int) -> None:
        self.port = port
        self._folder = folder
        self._file = folder / "nginx.conf"
        self._file.write_text(_FRAME.format(folder=folder, told=told))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Nginx":
        command = [find_program("nginx"), "-p", str(self._folder), "-e", str(self._folder / "early.log")]
        self._process = subprocess.Popen([*command, "-c", str(self._file)], stdin=subprocess.DEVNULL)
        try:
            wait_until(self._accepts, "nginx accepts connections")
        except AssertionError:
            self.__exit__()
            raise AssertionError((self._folder / "error.log").read_text()) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _accepts(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0


def pass_to(port: int, upstream: int, more: str = "") -> str:
    """The least that one can tell nginx."""
    return f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{upstream}; {more} }} }}"
