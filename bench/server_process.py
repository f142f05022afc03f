"""Starts servers for benchmarks as processes of their own, and reads what they cost."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

START_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running `tidegate serve`. `process` is the server, not its engine."""

    process: psutil.Process
    port: int
    admin_port: int

    def cpu_s(self) -> float:
        """CPU seconds of the server process so far, all threads, user and system."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def rss_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def engine(self) -> dict[str, object]:
        """Returns what `/admin/v1/engine` says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/admin/v1/engine", timeout=10) as answer:
            parsed: dict[str, object] = json.load(answer)
            return parsed


@contextlib.contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[ServerProcess]:
    """Runs `tidegate serve` with these arguments and environment on free ports until the block ends."""
    command = [sys.executable, "-c", "from tidegate.cli.main import main; main()", "serve", *arguments]
    command += ["--port", "0", "--admin-port", "0", "--log-level", "error"]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "stderr"
        environment = {"TIDEGATE_SERVER__STATE_DIR": folder, **environment}
        with output.open("wb") as stream:
            child = subprocess.Popen(command, stderr=stream, cwd=folder, env={**os.environ, **environment})
        try:
            port, admin_port = _wait_ready(child, output)
            yield ServerProcess(psutil.Process(child.pid), port, admin_port)
        finally:
            child.terminate()
            child.wait(30)


def _wait_ready(child: "subprocess.Popen[bytes]", output: Path) -> tuple[int, int]:
    for _ in range(int(START_TIMEOUT_S / 0.1)):
        found = re.search(r"ready on http://[^:]+:(\d+) \(admin on http://[^:]+:(\d+)\)", output.read_text())
        if found:
            return int(found[1]), int(found[2])
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
            raise RuntimeError(f"the server did not start:\n{output.read_text()}")
    raise TimeoutError(output.read_text())


@contextlib.contextmanager
def bare_asgi(num_tokens: int, step_s: float) -> Iterator[tuple[psutil.Process, int]]:
    """Runs `bare_stream.py`: the same HTTP server around an application that only sends prebuilt bytes."""
    script = Path(__file__).parent / "bare_stream.py"
    child = subprocess.Popen(
        [sys.executable, str(script), str(num_tokens), str(step_s)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        yield psutil.Process(child.pid), port
    finally:
        child.terminate()
        child.wait(30)
