"""What a server says at its start of a Redis that will never do, that will not do now, or that is not there."""

import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis

from harness.certificates import make_pair
from harness.programs import find_program
from harness.redis_server import RedisServer
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.sockets import accepts, free_port
from tidegate.stores.redis_client import RedisUnusable
from tidegate.stores.redis_start import MAX_CHARS, RedisUse, check_redis

pytestmark = pytest.mark.process

LEDGER, QUOTAS = RedisUse("idempotency.redis_url", keeps=True), RedisUse("quotas.redis_url", keeps=False)
SECRET = "a-secret"


@contextmanager
def program(folder: Path, *options: str) -> Iterator[str]:
    """A redis-server that listens on loopback, since its kind needs a port; gives its URL."""
    port = free_port()
    command = [find_program("redis-server"), *options, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), "redis-server accepts", 30)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        running.kill()
        running.wait()


@contextmanager
def cluster(folder: Path, *options: str) -> Iterator[str]:
    bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--save", "")
    with program(folder, *bus, *options) as url:
        yield url


@contextmanager
def sentinel(folder: Path) -> Iterator[str]:
    (folder / "sentinel.conf").write_text("")
    with program(folder, str(folder / "sentinel.conf"), "--sentinel") as url:
        yield url


NEVER: dict[str, tuple[tuple[str, ...], str, str]] = {
    "wants a password": (("--requirepass", SECRET), "", "refuses the URL's name and password, or wants some"),
    "another password": (("--requirepass", SECRET), f":not-{SECRET}@", "refuses the URL's name and password"),
    "a user unknown": (("--requirepass", SECRET), f"nobody:{SECRET}@", "refuses the URL's name and password"),
    "keys of others": (("--user", "default", "on", "nopass", "~other:*", "+@all"), "", "does not let this user write"),
    "no scripts": (("--user", "default", "on", "nopass", "~*", "+@all", "-eval"), "", "does not let this user write"),
}


@pytest.mark.parametrize(("options", "user", "words"), NEVER.values(), ids=NEVER)
def test_one_that_will_never_serve_is_refused(options: tuple[str, ...], user: str, words: str) -> None:
    with RedisServer(*options) as redis, pytest.raises(RedisUnusable, match=words) as raised:
        check_redis(redis.url.replace("unix://", f"unix://{user}"), LEDGER)
    assert str(raised.value).startswith("idempotency.redis_url: this Redis ")
    assert SECRET not in str(raised.value)


def test_a_node_of_a_cluster_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path) as url, pytest.raises(RedisUnusable, match=r"quotas\.redis_url.* Redis Cluster"):
        check_redis(url, QUOTAS)


def test_a_cluster_of_one_node_that_would_serve_today_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path) as url, Redis.from_url(url) as admin:
        admin.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        wait_until(lambda: b"cluster_state:ok" in admin.execute_command("CLUSTER", "INFO"), "it serves")
        with pytest.raises(RedisUnusable, match="Redis Cluster"):
            check_redis(url, QUOTAS)


def test_a_node_of_a_cluster_that_does_not_say_so_is_refused(tmp_path: Path) -> None:
    shy = ("--user", "default", "on", "nopass", "~*", "+@all", "-info")
    with cluster(tmp_path, *shy) as url, pytest.raises(RedisUnusable, match="Redis Cluster"):
        check_redis(url, QUOTAS)


def test_a_node_that_sends_us_elsewhere_is_refused() -> None:
    told = {b"INFO": b"-ERR unknown command\r\n", b"EVAL": b"-MOVED 3999 127.0.0.1:6381\r\n"}
    with answering(b"+OK\r\n", told) as url, pytest.raises(RedisUnusable, match="Redis Cluster"):
        check_redis(f"{url}?protocol=2", QUOTAS)


def test_a_sentinel_is_refused(tmp_path: Path) -> None:
    with sentinel(tmp_path) as url, pytest.raises(RedisUnusable, match="is a Sentinel"):
        check_redis(url, QUOTAS)


FOR_NOW: dict[str, tuple[tuple[str, ...], str]] = {
    "a replica": (("--replicaof", "127.0.0.1", "1"), "is a replica, which takes no writes"),
    "a replica that is silent": (
        ("--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "no"),
        "is a replica whose master is away",
    ),
    "full": (("--maxmemory", "1"), "has no memory left"),
    "forgets": (("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "policy allkeys-lru"),
}


@pytest.mark.parametrize(("options", "words"), FOR_NOW.values(), ids=FOR_NOW)
def test_one_that_will_not_do_now_is_a_warning(options: tuple[str, ...], words: str) -> None:
    with RedisServer(*options) as redis:
        [warning] = check_redis(redis.url, LEDGER)
    assert warning.startswith("idempotency.redis_url: this Redis ")
    assert words in warning


GOOD: dict[str, tuple[tuple[str, ...], str, RedisUse]] = {
    "as it comes": ((), "", LEDGER),
    "with a password": (("--requirepass", SECRET), f":{SECRET}@", LEDGER),
    "with a user who may do no more than he must": (
        ("--user", "app", "on", f">{SECRET}", "~tidegate:*", "+@all", "-info", "-@dangerous"),
        f"app:{SECRET}@",
        LEDGER,
    ),
    "quotas may be forgotten": (("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "", QUOTAS),
    "nothing is evicted": (("--maxmemory", "100mb", "--maxmemory-policy", "noeviction"), "", LEDGER),
    "a policy that never acts": (("--maxmemory-policy", "allkeys-lru"), "", LEDGER),
}


@pytest.mark.parametrize(("options", "user", "use"), GOOD.values(), ids=GOOD)
def test_one_that_will_do_is_no_word_worth(options: tuple[str, ...], user: str, use: RedisUse) -> None:
    with RedisServer(*options) as redis:
        assert check_redis(redis.url.replace("unix://", f"unix://{user}"), use) == []


@pytest.mark.parametrize("is_trusted", [True, False], ids=["known", "unknown"])
def test_tls_is_used_and_the_certificate_is_checked(tmp_path: Path, is_trusted: bool) -> None:
    pair, port = make_pair(tmp_path, "redis"), free_port()
    files = ("--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key))
    with RedisServer("--tls-port", str(port), *files, "--tls-auth-clients", "no"):
        wait_until(lambda: accepts(port), "Redis accepts TLS", 30)
        known = f"?ssl_ca_certs={pair.certificate}" if is_trusted else ""
        said = check_redis(f"rediss://localhost:{port}/0{known}", QUOTAS)
    assert [line for line in said if "does not answer yet (ConnectionError)" in line] == said
    assert bool(said) is not is_trusted


@contextmanager
def answering(answer: bytes, told: dict[bytes, bytes] | None = None) -> Iterator[str]:
    """A peer that answers its first client like this, or as `told` says for some commands; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)

        def serve() -> None:
            with suppress(OSError):
                client, _ = listener.accept()
                with client:
                    while asked := client.recv(65536):
                        for command in re.findall(rb"\*\d+\r\n\$\d+\r\n(\w+)", asked):
                            client.sendall((told or {}).get(command, answer))

        thread = threading.Thread(target=serve, name="peer")
        thread.start()
        try:
            yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        finally:
            listener.close()
            thread.join(30)


def absent() -> str:
    return f"redis://127.0.0.1:{free_port()}/0"


def test_one_that_is_not_there_is_a_warning_and_may_come() -> None:
    [warning] = check_redis(absent(), QUOTAS)
    assert "does not answer yet (ConnectionError)" in warning


def test_one_that_hangs_is_a_warning_after_its_time() -> None:
    with answering(b"") as url:
        began = time.monotonic()
        [warning] = check_redis(url, QUOTAS, timeout_s=0.1)
    assert "does not answer yet (TimeoutError)" in warning
    assert time.monotonic() - began < 20


def test_what_it_says_is_quoted_in_part() -> None:
    with answering(b"+OK\r\n", {b"INFO": b"-ERR no\r\n", b"EVAL": b"-ERR " + b"x" * 5000 + b"\r\n"}) as url:
        [warning] = check_redis(f"{url}?protocol=2", QUOTAS)
    assert "does not run our scripts: xxx" in warning
    assert len(warning) < 2 * MAX_CHARS


def test_one_that_speaks_something_else_is_a_warning() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        [warning] = check_redis(url, QUOTAS, timeout_s=1)
    assert "does not answer yet" in warning


STARTS: dict[str, dict[str, str]] = {
    "idempotency.redis_url": {"idempotency__store": "redis"},
    "quotas.redis_url": {"quotas__store": "redis"},
}


@pytest.mark.parametrize(("setting", "chosen"), STARTS.items(), ids=STARTS)
def test_the_server_says_it_and_does_not_start(setting: str, chosen: dict[str, str]) -> None:
    with RedisServer("--requirepass", SECRET) as redis:
        server = ServerProcess("scripted", **chosen, **{setting.replace(".", "__"): redis.url})
        with pytest.raises(AssertionError, match=f"{setting}: this Redis refuses"):
            server.__enter__()


def test_the_server_says_it_and_starts_where_it_may_come() -> None:
    url = absent()
    with ServerProcess("scripted", idempotency__store="redis", idempotency__redis_url=url, quotas__store="redis") as it:
        said = "".join(it.lines)
    assert said.count("idempotency.redis_url: this Redis does not answer yet") == 2
