"""Which origins may read answers: decided from headers alone, and told on every answer."""

import asyncio
from typing import Any

import pytest

from tidegate import errors
from tidegate.http.app import AppPorts, make_admin_app, make_public_app
from tidegate.http.cors import CorsPolicy
from tidegate.http.request_head import RequestHead
from tidegate.http.settings import HttpSettings
from tidegate.testing.asgi_client import AsgiClient, AsgiConnection

CHAT = "/v1/chat/completions"
APP, OTHER = "https://app.example", "https://evil.example"
ORIGIN = [("origin", APP)]
ASK = [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization,x-stainless-os")]


def refuse(_head: RequestHead) -> None:
    raise errors.InvalidApiKey("No.")


def ask(app: Any, method: str, target: str, **options: Any) -> AsgiConnection:
    connection: AsgiConnection = asyncio.run(AsgiClient(app).request(method, target, **options))
    return connection


def site(service: Any, *origins: str, **ports: Any) -> Any:
    return make_public_app(
        service, settings=HttpSettings(cors=CorsPolicy(origins), body_bytes=64, linger_s=0.01), ports=AppPorts(**ports)
    )


def words_of(answer: AsgiConnection, name: str) -> set[str]:
    return {word.strip() for word in answer.headers.get(name, "").split(",")}


def is_open(answer: AsgiConnection) -> bool:
    return any(name.startswith("access-control") for name in answer.headers)


def test_nothing_is_said_until_an_origin_is_named(make: Any) -> None:
    app = site(make.service())
    assert not is_open(ask(app, "OPTIONS", CHAT, headers=[*ORIGIN, *ASK]))
    answer = ask(app, "POST", CHAT, headers=ORIGIN, body=b"{}")
    assert not is_open(answer)
    assert "vary" not in answer.headers


def test_a_preflight_is_answered_without_a_key_and_before_routing(make: Any) -> None:
    service = make.service()
    app = site(service, APP, authorise=refuse)
    for target in (CHAT, "/nope", "/v1/models/a/b"):
        answer = ask(app, "OPTIONS", target, headers=[*ORIGIN, *ASK])
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == APP
        assert {"GET", "POST"} <= words_of(answer, "access-control-allow-methods")
        assert {
            "authorization",
            "content-type",
            "idempotency-key",
            "x-request-id",
            "x-deadline-ms",
            "x-first-token-deadline-ms",
            "x-priority",
            "traceparent",
            "tracestate",
            "x-stainless-os",
        } <= words_of(answer, "access-control-allow-headers")
        assert answer.headers["access-control-max-age"] == "600"
        assert "access-control-allow-credentials" not in answer.headers
    assert not service.calls
    assert ask(app, "POST", CHAT, headers=ORIGIN, body=b"{}").status == 401


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", OTHER), *ASK],
        [("origin", APP + "/"), *ASK],
        [("origin", APP.upper()), *ASK],
        [("origin", APP + ":443"), *ASK],
        [("origin", "null"), *ASK],
        [("origin", APP), ("origin", OTHER), *ASK],
        ASK,
        ORIGIN,
    ],
    ids=["other", "slash", "case", "port", "null", "two", "no origin", "no preflight"],
)
def test_any_other_options_needs_a_key(make: Any, headers: list[tuple[str, str]]) -> None:
    answer = ask(site(make.service(), APP, authorise=refuse), "OPTIONS", CHAT, headers=headers)
    assert answer.status == 401
    assert "access-control-allow-methods" not in answer.headers
    assert answer.headers["vary"] == "Origin"


def test_answers_and_errors_and_streams_may_be_read(make: Any) -> None:
    service = make.service()
    app = site(service, APP)
    service.reply = make.stream(b"data: [DONE]\n\n", ends=True)
    answers = [
        ask(app, "POST", CHAT, headers=ORIGIN, body=b"{}"),
        ask(app, "GET", "/v1/models", headers=ORIGIN),
        ask(app, "GET", "/nope", headers=ORIGIN),
        ask(app, "PUT", "/v1/models", headers=ORIGIN),
        ask(app, "POST", CHAT, headers=ORIGIN, body=b"x" * 65),
        ask(app, "GET", "/" + "a" * 9000, headers=ORIGIN),
        ask(app, "GET", "/", headers=[*ORIGIN, ("a", "b" * 70_000)]),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 405, 413, 414, 431]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == APP
        assert answer.headers["vary"] == "Origin"
        assert {"X-Request-Id", "Retry-After", "X-RateLimit-Remaining-Tokens", "Idempotent-Replayed"} <= words_of(
            answer, "access-control-expose-headers"
        )


def test_another_origin_is_answered_but_may_not_read(make: Any) -> None:
    service = make.service()
    answer = ask(site(service, APP), "POST", CHAT, headers=[("origin", OTHER)], body=b"{}")
    assert (answer.status, answer.headers["vary"]) == (200, "Origin")
    assert not is_open(answer)


def test_a_star_allows_every_origin_and_never_with_credentials(make: Any) -> None:
    answer = ask(site(make.service(), "*"), "GET", "/v1/models", headers=[("origin", OTHER)])
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


def test_the_admin_listener_never_opens(make: Any) -> None:
    app = make_admin_app(make.admin(), make.operator(), settings=HttpSettings(cors=CorsPolicy(("*",))))
    for method, target in (("OPTIONS", "/metrics"), ("GET", "/metrics"), ("GET", "/nope")):
        assert not is_open(ask(app, method, target, headers=[*ORIGIN, *ASK]))


def test_only_counters_of_clients_are_allowed_beside_the_fixed_names() -> None:
    asked = "X-Stainless-Lang, cookie, x-stainless-, x-stainless-a\r\nb, x-evil, " + "x-stainless-y," * 1000
    answered = CorsPolicy((APP,)).preflight_headers(
        "OPTIONS", {"origin": APP, "access-control-request-method": "GET", "access-control-request-headers": asked}
    )
    assert answered is not None
    names = dict(answered)["Access-Control-Allow-Headers"].split(", ")
    assert [name for name in names if "stainless" in name] == ["x-stainless-lang", "x-stainless-y"]
    assert not {"cookie", "x-evil"} & set(names)


@pytest.mark.parametrize(
    "origin", ["app.example", "https://app.example/", "https://a/b", "null", "", "HTTPS://A", "a b"]
)
def test_what_is_no_origin_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(ValueError, match="no origin"):
        CorsPolicy((origin,))
