"""Who gets in, by which header, on which route: every route of both listeners, in every spelling, in memory."""

import ast
import asyncio
import hmac
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tidegate.http import authorise
from tidegate.http.app import AppPorts, make_admin_app, make_public_app
from tidegate.http.authorise import authorise_by_credential, authorise_by_key
from tidegate.http.settings import HttpSettings
from tidegate.lifecycle import key_ring
from tidegate.lifecycle.key_policy import KeyRecord
from tidegate.lifecycle.key_ring import KeyRing
from tidegate.lifecycle.key_text import digest_of
from tidegate.lifecycle.principal import Principal
from tidegate.testing.asgi_client import AsgiClient, AsgiConnection
from tidegate.testing.manual_clock import ManualClock

KEY = "tg_AbCd1234_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"
CREDENTIAL = "0123456789abcdef0123456789abcdef"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW")
CHAT = "/v1/chat/completions"
HOSTS = ("evil/?", "x/#", "a/?x=", "evil/v1/../healthz?", "healthz", "")
OPEN_PUBLIC, OPEN_ADMIN = {"/healthz", "/health"}, {"/healthz", "/readyz"}


class FixedKeys:
    """Keys that do not change. Keeps who was noted as used."""

    def __init__(self, *records: KeyRecord, is_closed: bool = True) -> None:
        self.ring = KeyRing({record.digest: record for record in records}, is_closed)
        self.used: list[str] = []

    def look(self, now: float) -> KeyRing:
        return self.ring

    def note_use(self, key_id: str, wall: float) -> None:
        self.used.append(key_id)


def record(**fields: Any) -> KeyRecord:
    return KeyRecord(replace(Principal("key_AbCd1234", "mobile-app"), **fields), digest_of(KEY), 0.0)


def public_app(service: Any, keys: FixedKeys, clock: ManualClock | None = None) -> Any:
    clock = clock or ManualClock()
    return make_public_app(service, ports=AppPorts(clock=clock, authorise=authorise_by_key(keys, clock)))


def admin_app(make: Any, *, has_open_metrics: bool = False) -> Any:
    ports = AppPorts(authorise=authorise_by_credential(digest_of(CREDENTIAL)))
    return make_admin_app(
        make.admin(), make.operator(), settings=HttpSettings(has_open_metrics=has_open_metrics), ports=ports
    )


def ask(app: Any, method: str, target: str, *headers: tuple[str, str], body: bytes = b"") -> AsgiConnection:
    return asyncio.run(_ask(app, method, target, headers, body))


async def _ask(app: Any, method: str, target: str, headers: Any, body: bytes) -> AsgiConnection:
    return await AsgiClient(app).request(method, target, headers=headers, body=body)


def bearer(key: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {key}")


def assert_refused(answer: AsgiConnection, presented: str = KEY) -> None:
    """401 in our shape, with the challenge, and without a word of what was presented."""
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["content-type"] == "application/json"
    assert "retry-after" not in answer.headers
    if answer.body:  # none for HEAD
        error = msgspec.json.decode(answer.body)["error"]
        assert (error["type"], error["code"], error["param"]) == ("authentication_error", "invalid_api_key", None)
    assert not presented or presented.encode("latin-1") not in answer.body
    assert not presented or presented not in str(answer.headers)


def error_code(answer: AsgiConnection) -> str:
    code: str = msgspec.json.decode(answer.body)["error"]["code"]
    return code


def other_spellings(path: str) -> list[str]:
    first, _, rest = path[1:].partition("/")
    return [
        "/" + path,
        path + "/",
        path + "//",
        path.upper(),
        path.replace("/", "%2f"),
        path.replace("/", "%2F", 2),
        f"/{first}/./{rest}",
        f"/x/..{path}",
        path + "%20",
        path + ";a=b",
        path.lstrip("/"),
        "/%68ealthz",
        "/healthz/",
        "/healthz/.." + path,
        "/healthz%2f.." + path,
    ]


@pytest.fixture
def service(make: Any) -> Any:
    return make.service()


def test_without_any_key_everybody_gets_in(service: Any) -> None:
    app = public_app(service, FixedKeys(is_closed=False))
    assert ask(app, "POST", CHAT, body=b"{}").status == 200
    assert ask(app, "POST", CHAT, bearer("whatever"), body=b"{}").status == 200
    assert [call.principal.name for call in service.calls] == ["anonymous", "anonymous"]


def test_every_route_and_method_and_spelling_needs_a_key_but_the_open_ones(service: Any, make: Any) -> None:  # SEC-10
    apps = ((public_app(service, FixedKeys(record())), OPEN_PUBLIC), (admin_app(make), OPEN_ADMIN))
    for app, is_open in apps:
        assert set(app.router.patterns) > is_open
        for pattern in app.router.patterns:
            path = pattern.replace("{id}", "org/x")
            for method in METHODS:
                answer = ask(app, method, path)
                if path in is_open:
                    assert answer.status != 401
                else:
                    assert_refused(answer)
                for other in other_spellings(path):
                    assert_refused(ask(app, method, other))
    assert not service.calls


def test_with_a_key_other_spellings_are_no_routes(service: Any) -> None:  # SEC-10
    app = public_app(service, FixedKeys(record()))
    for pattern in app.router.patterns:
        if "{id}" in pattern or pattern in OPEN_PUBLIC:
            continue
        assert ask(app, "OPTIONS", pattern, bearer(KEY)).status == 204
        for other in other_spellings(pattern):
            if not other.startswith("/v1/models/"):
                assert ask(app, "GET", other, bearer(KEY)).status == 404
    assert not service.calls


@pytest.mark.parametrize("host", HOSTS)
def test_neither_host_nor_a_strange_target_chooses_who_gets_in(service: Any, make: Any, host: str) -> None:  # SEC-9
    for app, is_open in (
        (public_app(service, FixedKeys(record())), OPEN_PUBLIC),
        (admin_app(make), OPEN_ADMIN),
    ):
        for pattern in set(app.router.patterns) - is_open:
            path = pattern.replace("{id}", "x")
            for method in ("GET", "POST"):
                assert_refused(ask(app, method, path, ("host", host)))
                assert_refused(ask(app, method, path + "?x=/healthz", ("host", host)))
                assert_refused(ask(app, method, "http://localhost" + path, ("host", host)))
        for target in ("@google.com", "@google.com/healthz", "//healthz", "http://healthz/", "*"):
            assert_refused(ask(app, "GET", target, ("host", host)))
    assert not service.calls


GOOD = (f"Bearer {KEY}", f"bearer {KEY}", f"BEARER {KEY}", f"Bearer   {KEY}")
BAD: dict[str, list[str]] = {
    "none": [],
    "empty": [""],
    "scheme only": ["Bearer"],
    "scheme and space": ["Bearer "],
    "the key alone": [KEY],
    "Basic": ["Basic dGc6dGc="],
    "the key as Basic": [f"Basic {KEY}"],
    "another key": ["Bearer tg_AbCd1234_" + "0" * 43],
    "a key's id": ["Bearer key_AbCd1234"],
    "the beginning": [f"Bearer {KEY[:-1]}"],
    "more than the key": [f"Bearer {KEY}x"],
    "the key twice": [f"Bearer {KEY} {KEY}"],
    "two headers": [f"Bearer {KEY}", f"Bearer {KEY}"],
    "an empty second header": [f"Bearer {KEY}", ""],
    "another first": ["Bearer another-one", f"Bearer {KEY}"],
    "a list": [f"Bearer {KEY}, Basic x"],
    "quoted": [f'Bearer "{KEY}"'],
    "a tab": [f"Bearer\t{KEY}"],
    "10 KB": ["Bearer " + "k" * 10_240],
    "10 KB of spaces": ["Bearer" + " " * 10_240 + KEY],
    "not ASCII": ["Bearer Zoë-" + KEY],
    "a fullwidth letter": ["Bearer " + KEY + "\xff"],
    "nothing visible": ["Bearer \x01\x02"],
    "the digest": ["Bearer " + digest_of(KEY).hex()],
    "another scheme's name": [f"BearerX {KEY}"],
}


@pytest.mark.parametrize("value", GOOD)
def test_a_key_gets_in(service: Any, value: str) -> None:  # ERR-2
    keys = FixedKeys(record())
    answer = ask(public_app(service, keys), "POST", CHAT, ("authorization", value), body=b"{}")
    assert answer.status == 200
    assert service.calls[0].principal == record().principal
    assert keys.used == ["key_AbCd1234"]


@pytest.mark.parametrize("values", BAD.values(), ids=BAD)
def test_anything_else_is_401_and_repeats_nothing(service: Any, make: Any, values: list[str]) -> None:  # ERR-2 SEC-29
    headers = [("authorization", value) for value in values]
    keys = FixedKeys(record())
    presented = values[0].partition(" ")[2].strip() if values else ""
    assert_refused(ask(public_app(service, keys), "POST", CHAT, *headers, body=b"{}"), presented)
    swapped = [(name, value.replace(KEY, CREDENTIAL)) for name, value in headers]
    assert_refused(ask(admin_app(make), "GET", "/admin/v1/engine", *swapped), presented)
    assert not keys.used
    assert not service.calls


@pytest.mark.parametrize("name", ["x-api-key", "api-key", "proxy-authorization", "cookie"])
def test_no_other_header_holds_a_key(service: Any, name: str) -> None:
    for value in (KEY, f"Bearer {KEY}"):
        assert_refused(ask(public_app(service, FixedKeys(record())), "POST", CHAT, (name, value), body=b"{}"))
    assert_refused(ask(public_app(service, FixedKeys(record())), "POST", f"{CHAT}?api_key={KEY}", body=b"{}"))


def test_what_comes_after_authorisation_does_not_see_the_key(service: Any) -> None:  # SEC-29
    for is_closed in (True, False):
        app = public_app(service, FixedKeys(record(), is_closed=is_closed))
        ask(app, "POST", CHAT, bearer(KEY), ("x-deadline-ms", "5"), body=b"{}")
    for call in service.calls:
        assert "authorization" not in call.headers
        assert call.headers["x-deadline-ms"] == "5"
        assert KEY not in repr(call)


def test_a_key_is_refused_from_the_instant_of_its_expiry(service: Any) -> None:
    clock = ManualClock()
    app = public_app(service, FixedKeys(replace(record(), expires_at=clock.wall() + 10)), clock)
    clock.advance(9)
    assert ask(app, "GET", "/v1/models", bearer(KEY)).status == 200
    clock.advance(1)
    assert_refused(ask(app, "GET", "/v1/models", bearer(KEY)))


@pytest.mark.parametrize("method", METHODS)
def test_a_key_for_some_routes_is_403_on_the_others_whatever_the_method(service: Any, method: str) -> None:  # ERR-2
    app = public_app(service, FixedKeys(record(routes=frozenset({"/v1/models/{id}", "/v1/tokenize"}))))
    allowed = {"/v1/models/{id}", "/v1/tokenize", *OPEN_PUBLIC}
    for pattern in app.router.patterns:
        answer = ask(app, method, pattern.replace("{id}", "org/x"), bearer(KEY), body=b"{}")
        assert (answer.status == 403) is (pattern not in allowed)
        if answer.status == 403 and answer.body:
            error = msgspec.json.decode(answer.body)["error"]
            assert (error["type"], error["code"]) == ("permission_error", "route_not_allowed")
    assert ask(app, method, "/v1/nope", bearer(KEY)).status == 404
    assert_refused(ask(app, method, "/v1/nope"))


def test_the_admin_listener_takes_its_own_credential_and_no_key(service: Any, make: Any) -> None:
    app = admin_app(make)
    assert ask(app, "GET", "/admin/v1/engine", bearer(CREDENTIAL)).status == 200
    assert ask(app, "GET", "/metrics", bearer(CREDENTIAL)).status == 200
    assert_refused(ask(app, "GET", "/admin/v1/engine", bearer(KEY)))
    assert_refused(ask(public_app(service, FixedKeys(record())), "GET", "/v1/models", bearer(CREDENTIAL)), CREDENTIAL)


def test_metrics_are_open_only_where_a_setting_says_so_and_only_in_their_own_spelling(make: Any) -> None:
    app = admin_app(make, has_open_metrics=True)
    assert ask(app, "GET", "/metrics").status == 200
    assert_refused(ask(app, "GET", "/metrics/"))
    assert_refused(ask(app, "GET", "/admin/v1/engine"))
    assert_refused(ask(admin_app(make), "GET", "/metrics"))


class WatchedDigests(Mapping[bytes, KeyRecord]):
    """Says how it is used: a loop over it is a failure."""

    def __init__(self, records: dict[bytes, KeyRecord]) -> None:
        self._records = records
        self.asked: list[bytes] = []

    def __getitem__(self, digest: bytes) -> KeyRecord:
        self.asked.append(digest)
        return self._records[digest]

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("a loop over keys ends sooner for some than for others")

    def __len__(self) -> int:
        return len(self._records)


@pytest.mark.parametrize("key", [KEY, KEY[:-1] + "x", "x"])
def test_a_key_is_found_by_one_look_up_of_its_digest(service: Any, key: str) -> None:  # SEC-11
    keys = FixedKeys()
    digests = WatchedDigests({record().digest: record()})
    keys.ring = KeyRing(digests, is_closed=True)
    ask(public_app(service, keys), "GET", "/v1/models", bearer(key))
    assert digests.asked == [digest_of(key)]


SECRETS = {"key", "digest", "credential", "presented", "given", "found"}


def find_leaks(source: str) -> list[str]:
    """Returns every comparison that looks into a secret, and every loop: both end sooner for some than for others.

    Counting characters and asking whether something is there at all look into nothing.
    """
    leaks: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For | ast.While | ast.comprehension):
            leaks.append(ast.unparse(node))
        elif isinstance(node, ast.Compare):
            is_presence = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
            if not is_presence and any(names_secret(part) for part in (node.left, *node.comparators)):
                leaks.append(ast.unparse(node))
    return leaks


def names_secret(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return False
    names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return bool((names | {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}) & SECRETS)


@pytest.mark.parametrize("module", [authorise, key_ring])
def test_secrets_are_compared_in_constant_time_and_in_no_other_way(module: ModuleType) -> None:  # SEC-11
    source = inspect.getsource(module)
    assert find_leaks(source) == []
    assert "hmac.compare_digest(" in source
    assert vars(module)["hmac"] is hmac


@pytest.mark.parametrize(
    "source",
    ["if found.digest == digest: pass", "key in keys", "a != head.given", "for one in ring: pass", "[k for k in keys]"],
)
def test_the_scan_finds_what_leaks(source: str) -> None:
    assert find_leaks(source)
    assert not find_leaks("if len(given) <= 3 and found is not None and pattern not in routes: pass")
