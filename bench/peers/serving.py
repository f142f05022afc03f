"""A peer's server as a process: started on 127.0.0.1, waited for, ended with all that it started."""

import http.client
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog import Peer, Start
from environment import PeerTroubleError, inherited, last_words, say

ASK_EVERY_S = 0.25
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}


def free_port(wanted: int | None) -> int:
    """Returns a port of 127.0.0.1 that nobody has. Raises PeerTroubleError when the wanted one is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as fault:
            raise PeerTroubleError(f"port {wanted} cannot be had: {fault.strerror}") from None
        return int(probe.getsockname()[1])


@contextmanager
def serving(peer: Peer, start: Start, is_told_to_end: threading.Event) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs the peer's server; yields its process once it answers. Its output goes to `server.log` in the folder.

    Raises PeerTroubleError when it ends, or does not answer, within the peer's patience. Whatever it started is gone
    afterwards.
    """
    log = start.folder / "server.log"
    environment = inherited() | OFFLINE | dict(peer.settings) | {"HOME": str(start.folder)}
    environment["PATH"] = f"{start.folder / 'venv' / 'bin'}:{environment.get('PATH', '')}"
    with log.open("wb") as output:
        server = subprocess.Popen(
            peer.command(start),
            cwd=start.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_ready(peer, start, server, is_told_to_end)
        yield server
    finally:
        end(server, peer.end_patience_s)


def _wait_until_ready(
    peer: Peer, start: Start, server: "subprocess.Popen[bytes]", is_told_to_end: threading.Event
) -> None:
    began = time.monotonic()
    while not is_told_to_end.is_set():
        if server.poll() is not None:
            raise PeerTroubleError(f"{peer.name} ended with {server.returncode}: {_log_end(start.folder)}")
        if time.monotonic() - began > peer.patience_s:
            raise PeerTroubleError(f"{peer.name} did not answer in {peer.patience_s:.0f} s: {_log_end(start.folder)}")
        if _answers(start.port, peer.ready_path):
            say(f"{peer.name} is ready after {time.monotonic() - began:.1f} s")
            return
        is_told_to_end.wait(ASK_EVERY_S)


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status in (http.HTTPStatus.OK, http.HTTPStatus.UNAUTHORIZED)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _log_end(folder: Path) -> str:
    return last_words((folder / "server.log").read_text("utf-8", errors="replace")) + f" (whole: {folder}/server.log)"


def end(server: "subprocess.Popen[bytes]", patience_s: float) -> None:
    """Ends a server as an operator would, and then all that is left of its process group."""
    if server.poll() is None:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(patience_s)
        if server.poll() is None:
            say(f"killed: it did not end {patience_s:.0f} s after SIGTERM")
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
