"""What the manifests run, run here: the server with their settings, and Redis with their arguments."""

import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.deployments import deployed, documents, replaced
from harness.faults import Route, ask, hex_pieces
from harness.keys import add_key, bearing
from harness.programs import find_program
from harness.raw_http import request
from harness.redis_server import RedisServer
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.server_view import read_ready
from harness.sockets import accepts, free_port

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
TOKEN = "0" * 64
PASSWORD = "only-for-this-test"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The mounted secrets, as the kubelet mounts them: files and folder that cannot be written."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "key.txt").write_text(add_key(folder, "caller"))
    (folder / "admin-token").write_text(TOKEN)
    for name in ("keys.db", "admin-token"):
        (folder / name).chmod(0o440)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    yield folder
    folder.chmod(stat.S_IRWXU)


def test_a_server_with_these_settings_serves_whom_it_should(secrets: Path, tmp_path: Path) -> None:
    changes = {
        'host = "0.0.0.0"\nport': 'host = "127.0.0.1"\nport',
        'admin_host = "0.0.0.0"': 'admin_host = "127.0.0.1"',
        'state_dir = "/var/lib/tidegate"': f'state_dir = "{tmp_path}"',
        "/etc/tidegate/keys/keys.db": str(secrets / "keys.db"),
        "/etc/tidegate/admin/admin-token": str(secrets / "admin-token"),
    }
    file = replaced(deployed("kubernetes/tidegate.toml"), changes)
    key = (secrets / "key.txt").read_text()
    body = {**ask(Route.CHAT, {"pieces": hex_pieces("a"), "finish": "eos"}), "model": "default"}
    named = {**bearing(key), "Idempotency-Key": "once"}
    with RedisServer() as redis, ServerProcess("scripted", file=file, idempotency__redis_url=redis.url) as server:
        assert request(server.port, "POST", CHAT, body).status == 401
        first, again = (request(server.port, "POST", CHAT, body, named) for _ in range(2))
        assert (first.status, again.status, again.headers.get("idempotent-replayed")) == (200, 200, "true")
        assert read_ready(server.admin_port).status == 200
        assert request(server.admin_port, "GET", "/healthz").status == 200
        assert request(server.admin_port, "GET", "/metrics").status == 200
        assert request(server.admin_port, "GET", "/admin/v1/engine").status == 401
        assert request(server.admin_port, "GET", "/admin/v1/engine", headers=bearing(TOKEN)).status == 200
        server.signal()
        assert server.wait() == 0
    assert not [line for line in server.lines if '"level":"error"' in line], "a file that cannot be written is no fault"


def test_redis_takes_the_arguments_and_keeps_what_it_must(tmp_path: Path) -> None:
    (redis,) = [one for one in documents("kubernetes/redis.yaml") if one["kind"] == "StatefulSet"]
    (container,) = redis["spec"]["template"]["spec"]["containers"]
    here = {"/data": str(tmp_path), "$(REDIS_PASSWORD)": PASSWORD}
    port = free_port()
    arguments = [here.get(one, one) for one in container["args"]]
    command = [find_program(container["command"][0]), *arguments, "--port", str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: accepts(port), "Redis accepts connections")
            assert tell(port, "CONFIG GET maxmemory-policy").startswith("-NOAUTH")
            assert [probe(container, port, told) for told in (PASSWORD, f"not-{PASSWORD}")] == [True, False]
            for name, value in {"maxmemory-policy": "noeviction", "appendonly": "yes", "dir": str(tmp_path)}.items():
                assert value in tell(port, f"AUTH {PASSWORD}", f"CONFIG GET {name}").split("\r\n")
        finally:
            process.kill()


def probe(container: dict[str, Any], port: int, password: str) -> bool:
    """Whether the command of the readiness probe succeeds, with a password in the variable that the container gives."""
    (variable,) = [one["name"] for one in container["env"] if one["name"].startswith("REDISCLI_")]
    program, *options = container["readinessProbe"]["exec"]["command"]
    command = [find_program(program), "-p", str(port), *options]
    done = subprocess.run(command, env={variable: password}, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def tell(port: int, *orders: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 30.0) as sock:
        sock.sendall("".join(f"{order}\r\n" for order in (*orders, "QUIT")).encode())
        heard = b""
        while more := sock.recv(65536):
            heard += more
    return heard.decode()
