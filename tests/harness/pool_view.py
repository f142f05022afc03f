"""What a server of several engines says of each, and what tests do to one of them."""

import os
import signal
from typing import Any

from harness.raw_http import request
from harness.server_thread import wait_until


def engine_rows(admin_port: int) -> dict[str, dict[str, Any]]:
    """Returns the rows of the engines by their names."""
    listed = request(admin_port, "GET", "/admin/v1/engine").json()["engines"]
    return {row["name"]: row for row in listed}


def signal_engine(admin_port: int, name: str, number: int = signal.SIGKILL) -> int:
    """Sends a signal to an engine's process; returns the process' id."""
    process_id = engine_rows(admin_port)[name]["process_id"]
    os.kill(process_id, number)
    return int(process_id)


def wait_engine(admin_port: int, name: str, *, ready: bool) -> dict[str, Any]:
    """Waits until an engine is ready, or is not; returns its row."""
    wait_until(lambda: engine_rows(admin_port)[name]["ready"] is ready, f"{name} is {'ready' if ready else 'away'}")
    return engine_rows(admin_port)[name]


def act(admin_port: int, name: str, word: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Asks for an act on one engine; returns the status and the answer."""
    answer = request(admin_port, "POST", f"/admin/v1/engines/{name}/{word}", body)
    return answer.status, answer.json()


def add(admin_port: int, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Asks for one more engine; returns the status and the answer."""
    answer = request(admin_port, "POST", "/admin/v1/engines", body)
    return answer.status, answer.json()
