"""The server processes of a program that has several: who they are, and one of them out of the way."""

from pathlib import Path

import psutil

from harness.pool_view import engine_rows
from harness.server_process import ServerProcess
from harness.server_thread import wait_until


def workers(server: ServerProcess, number: int = 2) -> list[psutil.Process]:
    """Waits until so many workers can use every engine that is to be used, and returns them, the oldest first."""

    def found() -> list[psutil.Process]:
        children = psutil.Process(server.process_id).children()
        return [child for child in children if "tidegate.cli.worker" in _command(child)]

    def are_ready() -> bool:
        rows = engine_rows(server.admin_port).values()
        return len(found()) == number and all(row["ready"] for row in rows if row["state"] != "retiring")

    wait_until(are_ready, f"{number} workers")
    return sorted(found(), key=lambda one: one.create_time())


def pause(process: psutil.Process) -> None:
    """Stops all threads of a process: one that still ran could take the next connection and never answer it."""
    process.suspend()
    tasks = Path(f"/proc/{process.pid}/task")

    def is_stopped() -> bool:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
        return set(states) == {"T"}

    wait_until(is_stopped, "every thread has stopped")


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []  # it has just ended
