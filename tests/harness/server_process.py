"""The `tidegate` program as a stranger starts it: a process of its own, with its log."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from harness.state_folder import lend_state_folder

READY = re.compile(r"ready on https?://127\.0\.0\.1:(\d+) \(admin on http://127\.0\.0\.1:(\d+)\)")
PATIENCE_S = 60.0
PROGRAM = "from tidegate.cli.main import main; main()"


class ServerProcess:
    """Used as a context manager, ready when entered. `settings` are like `server__drain_timeout_s`: 1.5, and `file` is
    the text of a settings file.

    Its state lies in a folder of its own, unless `server__state_dir` says where. Nothing is calibrated, unless
    `engine__calibrate` says so: each folder would have to.
    `program` is Python that ends by running the command line; a test of crashes adds the crash.
    """

    def __init__(self, engine: str, program: str = PROGRAM, file: str | None = None, **settings: object) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
        environment["TIDEGATE_SERVER__STATE_DIR"] = lend_state_folder(self)
        if file is not None:
            path = Path(environment["TIDEGATE_SERVER__STATE_DIR"]) / "tidegate.toml"
            path.write_text(file, "utf-8")
            environment["TIDEGATE_CONFIG"] = str(path)
        environment |= {f"TIDEGATE_{name.upper()}": str(value) for name, value in settings.items()}
        environment["TIDEGATE_LOG__FORMAT"] = "json"
        environment.setdefault("TIDEGATE_ENGINE__CALIBRATE", "false")
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", "--engine", engine, "--port", "0", "--admin-port", "0"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.lines: list[str] = []
        self.port = self.admin_port = 0
        self._is_ready = threading.Event()
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), name="log of the server")

    def __enter__(self) -> "ServerProcess":
        self._reader.start()
        if not self._is_ready.wait(PATIENCE_S) or not self.port:
            self.__exit__()
            raise AssertionError("the server did not start; its log:\n" + "".join(self.lines))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.wait()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def has_ended_under_signals(self) -> bool:
        """Says whether the program has ended; tells it to end once more when not."""
        if self._process.poll() is not None:
            return True
        self.signal()
        return False

    def wait(self) -> int:
        """Waits for the end; returns the exit code, or minus the signal."""
        code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def _read(self, log: IO[str]) -> None:
        with log:
            for line in log:
                self.lines.append(line)
                found = READY.search(line)
                if found is not None:
                    self.port, self.admin_port = int(found[1]), int(found[2])
                    self._is_ready.set()
        self._is_ready.set()


def is_alive(process_id: int) -> bool:
    """Whether a process exists, of whoever it may be the child; a zombie has ended."""
    try:
        with open(f"/proc/{process_id}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
