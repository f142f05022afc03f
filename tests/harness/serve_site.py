"""Our Ray Serve application on a Ray of its own: one node, on loopback, as a program that `serve run` would be.

Nothing of it is left: every process that it starts, whoever is its parent, carries a mark in its environment.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import yaml

from harness.deployments import deployed, documents, replaced
from harness.raw_http import request
from harness.server_thread import wait_until
from harness.sockets import accepts, free_port
from tidegate.serve_app.proxy_guard import IMPORT_PATH

MARK = "TIDEGATE_TEST_SITE"
START_TIMEOUT_S = 240.0
END_TIMEOUT_S = 60.0
PROGRAM = """
import sys
import ray
ray.init(address=sys.argv[2], namespace="serve", _node_ip_address="127.0.0.1")
from ray.serve._private import api
from ray.serve.scripts import run
api.HTTP_PROXY_TIMEOUT = 240  # seconds; Serve's own is one minute, which a busy machine may need to start it
run.main([sys.argv[1]], standalone_mode=False)
"""
PORTS = (
    *("--port", "--node-manager-port", "--object-manager-port", "--ray-client-server-port"),
    *("--dashboard-agent-grpc-port", "--dashboard-agent-listen-port"),
    *("--runtime-env-agent-port", "--metrics-export-port"),
)
"""All of them given: otherwise Ray waits for files in which its parts say what they have chosen, and not for long."""
MAX_MS = 20_000
QUEUE_DEPTH = 4


class ServeSite:
    """Used as a context manager, answering when entered. One replica of the scripted engine, and Serve's own proxy, or
    the HAProxy that Ray brings.
    """

    def __init__(self, *, has_haproxy: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tgserve-"))  # short: Ray puts sockets into it
        self.port, self.admin_port = free_port(), free_port()
        self._mark = secrets.token_hex(8)
        self.open_ports = {"stats": free_port(), "metrics": free_port()}
        """Those that HAProxy opens beside."""
        self._environment = self._make_environment() | (self._haproxy_environment() if has_haproxy else {})
        self._programs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "ServeSite":
        config = self.folder / "serve.yaml"
        config.write_text(yaml.safe_dump(self._config()))
        ports = {flag: free_port() for flag in PORTS}
        address = f"127.0.0.1:{ports['--port']}"
        try:
            self._start(*_start_command(self.folder / "ray", ports))
            wait_until(lambda: accepts(ports["--port"]), "Ray has started", START_TIMEOUT_S)
            self._start(sys.executable, "-c", PROGRAM, str(config), address)
            self.wait_serving()
        except BaseException:
            text = self.log()
            self.__exit__()
            raise AssertionError(f"the site did not start; its log:\n{text}") from None
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes():
            process.kill()
        for program in self._programs:
            program.wait(END_TIMEOUT_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *command: str) -> None:
        with (self.folder / "site.log").open("ab") as log:
            program = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        self._programs.append(program)

    def wait_serving(self) -> None:
        """Waits until a replica takes requests, and its admin listener answers."""
        wait_until(lambda: self._is_serving() or self._has_ended(), "the application serves", START_TIMEOUT_S)
        assert not self._has_ended(), "the program has ended"

    def log(self) -> str:
        """What the program has written, its replicas' logs included."""
        return (self.folder / "site.log").read_text("utf-8", "replace")

    def processes(self) -> list[psutil.Process]:
        """All processes of this site that run."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def replicas(self) -> list[psutil.Process]:
        """The processes of the application's replicas."""
        return [one for one in self.processes() if "ServeReplica:tidegate" in "".join(_command(one))]

    def listening(self) -> dict[int, str]:
        """The TCP ports at which HAProxy listens, with their addresses."""
        haproxies = [one for one in self.processes() if "haproxy" in Path((_command(one) or [""])[0]).name]
        found = [connection for one in haproxies for connection in one.net_connections("tcp")]
        return {one.laddr.port: one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}

    def end(self) -> int:
        """Ends the application as Ctrl-C does, and then Ray; returns the former's exit code."""
        cluster, program = self._programs
        program.send_signal(signal.SIGINT)
        code = program.wait(END_TIMEOUT_S)
        cluster.terminate()
        cluster.wait(END_TIMEOUT_S)
        return code

    def _is_serving(self) -> bool:
        if not (accepts(self.port) and accepts(self.admin_port)):
            return False
        return request(self.port, "GET", "/health").status == 200

    def _has_ended(self) -> bool:
        return any(program.poll() is not None for program in self._programs)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def _make_environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEGATE_", "RAY_"))}
        source = str(Path(__file__).parents[2] / "src")
        return {
            **kept,
            MARK: self._mark,
            "PYTHONPATH": source,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
            "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
            "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": IMPORT_PATH,
        }

    def _haproxy_environment(self) -> dict[str, str]:
        """HAProxy, with all that it would put at a fixed place in this site's own."""
        folder = self.folder / "haproxy"
        folder.mkdir()
        first = free_port()
        return {
            "RAY_SERVE_ENABLE_HA_PROXY": "1",
            "RAY_worker_niceness": "0",
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
            "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
            "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
            "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "state"),
            "RAY_SERVE_HAPROXY_STATS_PORT": str(self.open_ports["stats"]),
            "RAY_SERVE_HAPROXY_METRICS_PORT": str(self.open_ports["metrics"]),
            "RAY_SERVE_HAPROXY_NBTHREAD": "1",
            "RAY_SERVE_HAPROXY_STARTUP_TIMEOUT_S": "120",
            "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first),
            "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + 100),
        }

    def _config(self) -> dict[str, object]:
        """The deployed configuration with this site's ports and files, and an engine without a model."""
        changes = {
            'state_dir = "/var/lib/tidegate"': f'state_dir = "{self.folder / "state"}"\nadmin_port = {self.admin_port}',
            "max_ms = 540000": f"max_ms = {MAX_MS}",
            'store = "redis"': 'store = "sqlite"',
        }
        settings = self.folder / "tidegate.toml"
        settings.write_text(replaced(deployed("ray/tidegate.toml"), changes))
        (config,) = documents("ray/serve.yaml")
        config["http_options"] |= {"host": "127.0.0.1", "port": self.port}
        (application,) = config["applications"]
        application["args"]["config_file"] = str(settings)
        engine = {"kind": "scripted", "calibrate": False, "max_sequences": 4}
        admission = {"queue_depth": QUEUE_DEPTH}
        application["args"]["settings"] = {"engine": engine, "auth": {"no_auth": True}, "admission": admission}
        (deployment,) = application["deployments"]
        deployment["autoscaling_config"]["max_replicas"] = 1
        deployment["ray_actor_options"] = {"num_cpus": 0.1}
        deployment["health_check_period_s"] = 1
        return dict(config)


def _start_command(folder: Path, ports: dict[str, int]) -> list[str]:
    command = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", "--disable-usage-stats"]
    command += ["--node-ip-address=127.0.0.1", "--num-cpus=4", "--include-dashboard=false"]
    command += [f"--temp-dir={folder}", "--object-store-memory=100000000"]
    return [*command, *(f"{flag}={port}" for flag, port in ports.items())]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
