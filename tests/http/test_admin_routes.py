"""The admin listener's routes by hand: bodies, filters, who is let in, and the audit."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidegate import errors
from tidegate.contract.admin import AddBody, RollBody
from tidegate.contract.admin_query import DEFAULT_LISTED, RequestFilter, read_filter
from tidegate.contract.health import DegradedEngine
from tidegate.http.app import AppPorts, make_admin_app, make_public_app
from tidegate.http.request_head import RequestHead
from tidegate.lifecycle.principal import Principal
from tidegate.observability.audit import AdminAct
from tidegate.testing.asgi_client import AsgiClient, AsgiConnection

ACTS = ("/admin/v1/drain", "/admin/v1/requests/known/abort", "/admin/v1/cache/flush", "/admin/v1/engine/restart")


class Desk:
    """An admin application and what it was told."""

    def __init__(self, make: Any, *, is_local: bool = True, **ports: Any) -> None:
        self.admin, self.operator = make.admin(), make.operator()
        self.audit: list[AdminAct] = []
        self.app = make_admin_app(
            self.admin, self.operator, ports=AppPorts(**ports), audit=self.audit.append, is_local=is_local
        )

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> AsgiConnection:
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return asyncio.run(AsgiClient(self.app).request(method, path, body=body, headers=lines))


def code_of(answer: AsgiConnection) -> str:
    return str(msgspec.json.decode(answer.body)["error"]["code"])


@pytest.fixture
def desk(make: Any) -> Desk:
    return Desk(make)


BODIES: list[tuple[str, bytes, tuple[str, object]]] = [
    ("/admin/v1/drain", b"", ("drain", None)),
    ("/admin/v1/drain", b"{}", ("drain", None)),
    ("/admin/v1/drain", b'{"timeout_s":null}', ("drain", None)),
    ("/admin/v1/drain", b'{"timeout_s":0}', ("drain", 0.0)),
    ("/admin/v1/drain", b'{"timeout_s":2.5}', ("drain", 2.5)),
    ("/admin/v1/requests/known/abort", b" \n", ("abort", "known")),
    ("/admin/v1/cache/flush", b"{}", ("flush", None)),
    ("/admin/v1/engine/restart", b"", ("restart", 0.0)),
    ("/admin/v1/engine/restart", b'{"wait_s":30}', ("restart", 30.0)),
    ("/admin/v1/engines", b"", ("add", AddBody())),
    ("/admin/v1/engines", b'{"model":"m","url":"http://a:1","wait_s":2}', ("add", AddBody("m", "http://a:1", 2.0))),
    ("/admin/v1/engines/known/retire", b'{"wait_s":2}', ("retire", 2.0)),
    ("/admin/v1/engines/roll", b"", ("roll", RollBody())),
    ("/admin/v1/engines/roll", b'{"model":"m","ready_s":5,"wait_s":2}', ("roll", RollBody("m", 5.0, 2.0))),
    ("/admin/v1/engines/roll/stop", b"{}", ("stop_roll", None)),
]


@pytest.mark.parametrize(("path", "body", "act"), BODIES)
def test_an_act_is_passed_on_and_audited(make: Any, path: str, body: bytes, act: tuple[str, object]) -> None:
    desk = Desk(make, authorise=lambda _: Principal("id-1", "night shift"))
    answer = desk.ask("POST", path, body, x_request_id="mine")
    assert (answer.status, answer.body) == (202, b'{"status":"as told"}')
    assert desk.operator.acts == [act]
    (record,) = desk.audit
    assert (record.credential, record.request_id, record.status, record.outcome) == ("night shift", "mine", 202, "done")
    assert record.action == path.replace("known", "{id}")
    assert record.target == ("known" if "known" in path else "")


REFUSED: list[tuple[str, str, bytes, int, str]] = [
    ("an unknown member", "/admin/v1/drain", b'{"timeout":1}', 400, "unknown_parameter"),
    ("a member where none is", "/admin/v1/cache/flush", b'{"all":true}', 400, "unknown_parameter"),
    ("a negative time", "/admin/v1/drain", b'{"timeout_s":-1}', 400, "invalid_value"),
    ("a time without bound", "/admin/v1/drain", b'{"timeout_s":1e9}', 400, "invalid_value"),
    ("a string for a number", "/admin/v1/engine/restart", b'{"wait_s":"5"}', 400, "invalid_value"),
    ("too long a wait", "/admin/v1/engine/restart", b'{"wait_s":601}', 400, "invalid_value"),
    ("no JSON", "/admin/v1/engine/restart", b"{", 400, "invalid_json"),
    ("no object", "/admin/v1/engine/restart", b"[]", 400, "invalid_json"),
    ("deep nesting", "/admin/v1/drain", b'{"timeout_s":' + b"[" * 50 + b"]" * 50 + b"}", 400, "invalid_value"),
    ("a large body", "/admin/v1/drain", b" " * 5000, 413, "body_too_large"),
    ("a wait without bound", "/admin/v1/engines", b'{"wait_s":601}', 400, "invalid_value"),
    ("a model without end", "/admin/v1/engines", b'{"model":"' + b"m" * 513 + b'"}', 400, "invalid_value"),
    ("an address without end", "/admin/v1/engines", b'{"url":"' + b"u" * 2049 + b'"}', 400, "invalid_value"),
    ("no time to be ready", "/admin/v1/engines/roll", b'{"ready_s":0}', 400, "invalid_value"),
    ("more than there is", "/admin/v1/engines/roll", b'{"ready_s":3601}', 400, "invalid_value"),
    ("an unknown engine", "/admin/v1/engines/unknown/retire", b"", 404, "route_not_found"),
    ("an unknown id", "/admin/v1/requests/unknown/abort", b"", 404, "route_not_found"),
]


@pytest.mark.parametrize(("path", "body", "status", "code"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_bad_act_is_refused_and_audited(desk: Desk, path: str, body: bytes, status: int, code: str) -> None:  # DL-4
    answer = desk.ask("POST", path, body)
    assert (answer.status, code_of(answer)) == (status, code)
    assert desk.operator.acts == []
    assert [(record.status, record.outcome) for record in desk.audit] == [(status, code)]


def test_readiness_names_what_is_degraded_and_a_roll_is_looked_at(desk: Desk) -> None:
    assert desk.ask("GET", "/readyz").body == b'{"status":"ready"}'
    desk.admin.unwell = [DegradedEngine(engine="b", model="m", condition="on trial")]
    answer = desk.ask("GET", "/readyz")
    assert (answer.status, msgspec.json.decode(answer.body)["degraded"]) == (
        200,
        [{"engine": "b", "model": "m", "condition": "on trial"}],
    )
    assert desk.ask("GET", "/admin/v1/engines/roll").body == b'{"state":"none"}'


def test_an_act_takes_json_only(desk: Desk) -> None:
    """A form is what a web page can send without being asked."""
    answer = desk.ask("POST", "/admin/v1/drain", b"a=1", content_type="application/x-www-form-urlencoded")
    assert (answer.status, desk.operator.acts) == (415, [])


@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_only_post_acts(desk: Desk, path: str, method: str) -> None:
    assert desk.ask(method, path).status == 405
    assert desk.operator.acts == []


def test_nothing_that_changes_the_server_is_on_the_public_listener(make: Any) -> None:
    service = make.service()
    public = make_public_app(service)
    for path in ACTS:
        assert asyncio.run(AsgiClient(public).request("POST", path)).status == 404
    changing = {
        pattern for pattern, methods in public.router.patterns.items() if set(methods) - {"GET", "HEAD", "OPTIONS"}
    }
    assert all(pattern.startswith("/v1/") for pattern in changing)
    assert not any("admin" in pattern or "metrics" in pattern for pattern in public.router.patterns)


HOSTS: list[tuple[str, bool]] = [
    ("localhost", True),
    ("LOCALHOST:9464", True),
    ("127.0.0.1", True),
    ("127.0.0.1:80", True),
    ("127.8.8.8:9464", True),
    ("[::1]", True),
    ("[::1]:9464", True),
    ("evil.example", False),
    ("evil.example:9464", False),
    ("localhost.evil.example", False),
    ("127.0.0.1.evil.example", False),
    ("10.0.0.1:9464", False),
    ("[::2]:9464", False),
    ("[::1]evil", False),
    ("127.0.0.1:9464@evil", False),
    ("localhost:x", False),
    ("2130706433", False),
    ("0x7f.1", False),
    ("", False),
]


@pytest.mark.parametrize(("host", "is_let_in"), HOSTS)
@pytest.mark.parametrize(("method", "path"), [("POST", "/admin/v1/drain"), ("GET", "/admin/v1/requests")])
def test_on_loopback_only_loopback_is_a_host(desk: Desk, host: str, is_let_in: bool, method: str, path: str) -> None:
    answer = desk.ask(method, path, host=host)
    assert (answer.status != 403) is is_let_in
    if not is_let_in:
        assert code_of(answer) == "route_not_allowed"
        assert desk.operator.acts == []
        assert [record.outcome for record in desk.audit] == ["route_not_allowed"] * (method == "POST")


def test_health_answers_any_host_and_a_remote_listener_has_other_names(make: Any, desk: Desk) -> None:
    for path in ("/healthz", "/readyz"):
        assert desk.ask("GET", path, host="10.2.3.4:9464", origin="http://x").status == 200
    assert Desk(make, is_local=False).ask("POST", "/admin/v1/cache/flush", host="tidegate.internal:9464").status == 202


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9464", ""])
def test_a_web_page_is_refused_whatever_it_says_it_is(make: Any, is_local: bool, origin: str) -> None:
    desk = Desk(make, is_local=is_local)
    for method, path in (("POST", "/admin/v1/engine/restart"), ("OPTIONS", "/admin/v1/drain"), ("GET", "/metrics")):
        assert desk.ask(method, path, host="127.0.0.1", origin=origin).status == 403
    assert desk.operator.acts == []


def test_who_shows_no_credential_is_audited(make: Any) -> None:
    def refuse(_head: RequestHead) -> Principal:
        raise errors.InvalidApiKey("No.")

    desk = Desk(make, authorise=refuse)
    assert desk.ask("POST", "/admin/v1/drain", host="127.0.0.1").status == 401
    assert [(record.credential, record.outcome) for record in desk.audit] == [("anonymous", "invalid_api_key")]
    assert desk.ask("GET", "/admin/v1/requests", host="127.0.0.1").status == 401
    assert len(desk.audit) == 1


FILTERS: list[tuple[bytes, RequestFilter]] = [
    (b"", RequestFilter()),
    (b"limit=1000", RequestFilter(1000)),
    (b"work=running&route=%2Fv1%2Fchat%2Fcompletions", RequestFilter(work="running", route="/v1/chat/completions")),
    (
        b"request_id=a-b&model=m&key=k&reply=unsent",
        RequestFilter(DEFAULT_LISTED, "a-b", None, "m", None, "unsent", "k"),
    ),
]


@pytest.mark.parametrize(("query", "wanted"), FILTERS)
def test_a_query_is_a_filter(query: bytes, wanted: RequestFilter) -> None:
    assert read_filter(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        *(b"limit=0", b"limit=1001", b"limit=x", b"limit=", b"limit=-1"),
        *(b"what=1", b"key=a&key=b", b"key=%ff", b"\xff=1"),
        b"&".join(b"key=%d" % number for number in range(20)),
    ],
)
def test_a_query_that_is_none_is_refused(query: bytes) -> None:
    with pytest.raises(errors.InvalidRequest):
        read_filter(query)
