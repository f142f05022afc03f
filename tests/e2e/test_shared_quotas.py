"""Two server processes and one Redis: a key's quotas count over both, whatever happens to either."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.keys import add_key, bearing, keys_in
from harness.raw_http import Answer, RawClient, request
from harness.redis_server import RedisServer
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.server_view import read_metrics
from tidegate.cli.state_folder import KEYS_FILE
from tidegate.lifecycle.principal import Quotas

pytestmark = pytest.mark.process

CHAT = "/v1/chat/completions"
BODY = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "x_script": {"pieces": ["48", "69"]}}
LONG = {**BODY, "stream": True, "x_script": {"pieces": ["48", "69"], "delays_s": [0.0, 600.0]}}
KEYS = {
    "minute": Quotas(requests_per_minute=3),
    "tokens": Quotas(tokens_per_minute=1_000_000),
    "one": Quotas(concurrency=1),
    "workers": Quotas(requests_per_minute=4),
    "away": Quotas(requests_per_minute=2),
    "free": Quotas(),
}


class Site:
    """Servers that read one file of keys and share one Redis."""

    def __init__(self, redis: RedisServer, folder: Path) -> None:
        self.redis = redis
        self.folder = folder
        self.keys = {name: add_key(folder, name, quotas=quotas) for name, quotas in KEYS.items()}

    def server(self, **settings: object) -> ServerProcess:
        own = {
            "quotas__store": "redis",
            "quotas__redis_url": self.redis.url,
            "quotas__timeout_ms": 5000,
            "auth__keys_file": str(self.folder / KEYS_FILE),
        }
        return ServerProcess("scripted", **{**own, **settings})

    def ask(self, server: ServerProcess, name: str, body: Any = BODY) -> Answer:
        return request(server.port, "POST", CHAT, body, bearing(self.keys[name]))


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def site(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("keys")
    made = Site(redis, folder)
    assert len(keys_in(folder).list_keys()) == len(KEYS)
    return made


@pytest.fixture(scope="module")
def pair(site: Site) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with site.server() as one, site.server() as other:
        yield one, other


def test_requests_of_a_minute_count_over_both(site: Site, pair: tuple[ServerProcess, ServerProcess]) -> None:
    one, other = pair
    answers = [site.ask(server, "minute") for server in (one, other, one)]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["2", "1", "0"]
    for server in pair:
        refused = site.ask(server, "minute")
        assert refused.status == 429
        error = refused.json()["error"]
        assert error["code"] == "rate_limit_exceeded"
        assert error["limit"] == {"name": "requests_per_minute", "value": 3, "actual": 4, "scope": "key"}
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.headers["x-ratelimit-remaining-requests"] == "0"


def test_tokens_that_were_not_used_come_back_to_both(site: Site, pair: tuple[ServerProcess, ServerProcess]) -> None:
    one, other = pair
    first = site.ask(one, "tokens", {**BODY, "max_tokens": 100_000})
    assert first.status == 200
    left = int(first.headers["x-ratelimit-remaining-tokens"])

    def is_back() -> bool:
        answer = site.ask(other, "tokens", {**BODY, "max_tokens": 1})
        return answer.status == 200 and int(answer.headers["x-ratelimit-remaining-tokens"]) <= left

    wait_until(is_back, "what is told never rises")
    many = [site.ask(server, "tokens", {**BODY, "max_tokens": 100_000}).status for server in (one, other) * 8]
    assert many == [200] * 16, "each of them gave back what it did not use"


def test_a_slot_is_held_for_both_and_comes_back_with_its_request(
    site: Site, pair: tuple[ServerProcess, ServerProcess]
) -> None:
    one, other = pair
    with RawClient(one.port) as client:
        client.post(CHAT, LONG, bearing(site.keys["one"]))
        assert client.read_head().status == 200
        refused = site.ask(other, "one")
        assert (refused.status, refused.json()["error"]["limit"]["name"]) == (429, "concurrency")
    wait_until(lambda: site.ask(other, "one").status == 200, "the client went, and its slot with it")


def test_a_server_that_dies_leaves_no_slot_taken(site: Site, pair: tuple[ServerProcess, ServerProcess]) -> None:
    with site.server() as doomed, RawClient(doomed.port) as client:
        client.post(CHAT, LONG, bearing(site.keys["one"]))
        assert client.read_head().status == 200
        assert site.ask(pair[0], "one").status == 429
    wait_until(lambda: site.ask(pair[0], "one").status == 200, "its lease has ended")


def test_several_workers_share_with_other_servers(site: Site, pair: tuple[ServerProcess, ServerProcess]) -> None:
    with site.server(server__workers=2) as several:
        statuses = [site.ask(server, "workers").status for server in (several, pair[0]) * 2]
        assert statuses == [200] * 4
        assert site.ask(several, "workers").status == 429
        assert read_metrics(several.admin_port).value("quota_questions_total", outcome="answered") >= 3


@pytest.mark.parametrize(
    ("when_away", "statuses"), [("local", [200, 200, 429]), ("refuse", [503, 503, 503])], ids=["local", "refuse"]
)
def test_without_redis(site: Site, tmp_path: Path, when_away: str, statuses: list[int]) -> None:
    settings = {"quotas__redis_url": f"unix://{tmp_path}/nothing.sock", "quotas__when_away": when_away}
    with site.server(**settings) as server:
        answers = [site.ask(server, "away") for _ in statuses]
        assert [answer.status for answer in answers] == statuses
        if when_away == "refuse":
            assert answers[0].json()["error"]["code"] == "no_capacity"
            assert answers[0].headers["retry-after"] == "1"
        assert site.ask(server, "free").status == 200, "a key without quotas does not wait for Redis"
        metrics = read_metrics(server.admin_port)
        assert metrics.value("quota_questions_total", outcome="unanswered") >= len(statuses)
    assert "does not answer" in "".join(server.lines)


def test_a_store_without_an_address_is_refused_at_the_start() -> None:
    server = ServerProcess("scripted", quotas__store="redis")
    with pytest.raises(AssertionError, match=r"quotas\.redis_url"):
        server.__enter__()
