"""A real nginx in front of a server under test, with nothing set but where its files are and what it is told."""

import subprocess
from pathlib import Path

from harness.programs import find_program
from harness.server_thread import wait_until
from harness.sockets import accepts

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


class Nginx:
    """Used as a context manager, accepting when entered. `told` is the content of `http {}`, listening on `port`."""

    def __init__(self, folder: Path, told: str, port: int) -> None:
        self.port = port
        self._folder = folder
        self._file = folder / "nginx.conf"
        self._file.write_text(_FRAME.format(folder=folder, told=told))
        self._command = [find_program("nginx"), "-p", str(folder), "-e", str(folder / "early.log")]
        self._command += ["-c", str(self._file)]
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        """Has nginx judge the configuration; fails with what it says."""
        done = subprocess.run([*self._command, "-t"], capture_output=True, check=False, timeout=60)
        said = done.stderr.decode()
        assert done.returncode == 0, said
        assert "[warn]" not in said, said

    def __enter__(self) -> "Nginx":
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: accepts(self.port), "nginx accepts connections")
        except AssertionError:
            self.__exit__()
            raise AssertionError((self._folder / "error.log").read_text()) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def pass_to(port: int, upstream: int, more: str = "") -> str:
    """The least that one can tell nginx."""
    return f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{upstream}; {more} }} }}"
