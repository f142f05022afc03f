"""A Ray cluster for the tests of a file, of one node or more: a program of its own, on loopback, with its own folder.

Nothing of it is left: its processes are a session of their own, which is ended as a whole.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil

from harness.server_thread import wait_until

TOKEN = secrets.token_hex(16)
"""One for all clusters of a test process: Ray reads it once."""
START_TIMEOUT_S = 180.0
NUM_STARTS = 3
"""Ray gives its own parts half a minute to start, which a busy machine may not keep."""
_PORTS = (
    *("--port", "--node-manager-port", "--object-manager-port", "--ray-client-server-port"),
    *("--dashboard-agent-grpc-port", "--dashboard-agent-listen-port"),
    *("--runtime-env-agent-port", "--metrics-export-port"),
)
_NODE_PORTS = tuple(flag for flag in _PORTS if flag not in {"--port", "--ray-client-server-port"})
"""All of them given: otherwise Ray waits for files in which its parts say what they have chosen, and not for long."""


def ray_environment() -> dict[str, str]:
    """What a process sets before it loads Ray, so that it is quiet, on loopback, and let in."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_worker_niceness": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


class RayClusterProcess:
    """Used as a context manager. `address` is what servers connect to. `environment` is in force meanwhile.

    Ray that is to have several nodes listens beyond loopback, and asks for its token.
    """

    def __init__(self, num_cpus: int = 16, *, has_nodes: bool = False) -> None:
        self._num_cpus = num_cpus
        self._stack = ExitStack()
        self.environment = ray_environment()
        if has_nodes:
            self.environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "1"
        self.folder = Path(tempfile.mkdtemp(prefix="tgray-"))  # short: Ray puts sockets into it
        self.address = ""

    def __enter__(self) -> "RayClusterProcess":
        root = Path(__file__).parents[2]
        paths = [str(root / "src"), str(root / "tests"), os.environ.get("PYTHONPATH", "")]
        self.environment["PYTHONPATH"] = os.pathsep.join(paths)
        saved = dict(os.environ)
        os.environ.update(self.environment)
        self._stack.callback(_restore, saved)
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for _ in range(NUM_STARTS):
            self._start()
            wait_until(lambda: self._is_up() or self._process.poll() is not None, "Ray starts", START_TIMEOUT_S)
            if self._is_up():
                return self
            said = self.log()
            self._end()
        self._stack.close()
        raise AssertionError(f"Ray did not start:\n{said}")

    def __exit__(self, *_: object) -> None:
        self._end()
        self._stack.close()

    def add_node(self, num_cpus: int) -> None:
        """Starts a further raylet, as another machine would have."""
        ports = free_ports(len(_NODE_PORTS))
        flags = [f"{flag}={port}" for flag, port in zip(_NODE_PORTS, ports, strict=True)]
        node = self._launch(f"--address={self.address}", f"--num-cpus={num_cpus}", *flags, log="node.log")
        self._stack.callback(node.wait)
        wait_until(lambda: self._is_up("node.log") or node.poll() is not None, "a further node starts", START_TIMEOUT_S)
        assert self._is_up("node.log"), self.log("node.log")

    def _start(self) -> None:
        ports = free_ports(len(_PORTS))
        self.address = f"127.0.0.1:{ports[0]}"
        flags = [f"{flag}={port}" for flag, port in zip(_PORTS, ports, strict=True)]
        size = (f"--num-cpus={self._num_cpus}", f"--temp-dir={self.folder}")
        self._process = self._launch("--head", "--include-dashboard=false", *size, *flags, log="start.log")

    def _launch(self, *flags: str, log: str) -> "subprocess.Popen[bytes]":
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--disable-usage-stats", *flags]
        command += ["--node-ip-address=127.0.0.1", "--object-store-memory=100000000"]
        with (self.folder / log).open("wb") as file:
            return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)

    def _end(self) -> None:
        """Ends all of it, whoever started it: each part has the folder on its command line, or a parent that has."""
        parts = {one for one in psutil.process_iter() if str(self.folder) in " ".join(_command_of(one))}
        parts |= {child for one in parts for child in _children_of(one)}
        for one in parts:
            if "start" in _command_of(one):
                one.terminate()
        self._process.terminate()
        _, alive = psutil.wait_procs(parts, timeout=10)
        for one in alive:
            one.kill()
        psutil.wait_procs(alive, timeout=10)
        self._process.wait()

    def _is_up(self, log: str = "start.log") -> bool:
        return "Ray runtime started" in self.log(log)

    def log(self, name: str = "start.log") -> str:
        """What the start of a node has said."""
        return (self.folder / name).read_text("utf-8", "replace")


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _children_of(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def free_ports(number: int) -> list[int]:
    """Returns ports of loopback that were free just now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _restore(saved: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(saved)
