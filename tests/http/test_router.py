"""Which handler serves a request target (SEC-10: other spellings are other paths)."""

import pytest

from tidegate.errors import MethodNotAllowed, RouteNotFound
from tidegate.http.exchange import Exchange
from tidegate.http.router import UNMATCHED, Route, Router


async def get_models(exchange: Exchange) -> None: ...


async def get_model(exchange: Exchange) -> None: ...


async def post_chat(exchange: Exchange) -> None: ...


ROUTER = Router(
    [
        Route("GET", "/v1/models", get_models),
        Route("GET", "/v1/models/{id}", get_model),
        Route("POST", "/v1/chat/completions", post_chat),
    ]
)


def test_an_exact_path_finds_its_handler() -> None:
    assert ROUTER.locate("POST", b"/v1/chat/completions").handler is post_chat
    assert ROUTER.locate("GET", b"/v1/models").handler is get_models


def test_head_finds_the_handler_of_get() -> None:
    assert ROUTER.locate("HEAD", b"/v1/models").handler is get_models


@pytest.mark.parametrize(
    ("path", "model_id"),
    [
        (b"/v1/models/a", "a"),
        (b"/v1/models/org/name", "org/name"),
        (b"/v1/models/org%2Fname", "org/name"),
        (b"/v1/models/org/name:f.gguf", "org/name:f.gguf"),
        (b"/v1/models/%C3%A9", "é"),
        (b"/v1/models/a+b%20c", "a+b c"),
        (b"/v1/models//", "/"),
    ],
)
def test_the_rest_of_the_path_is_a_model_id(path: bytes, model_id: str) -> None:
    match = ROUTER.locate("GET", path)
    assert (match.handler, match.argument, match.pattern) == (get_model, model_id, "/v1/models/{id}")


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"",
        b"*",
        b"/v1",
        b"/v1/models/",
        b"/v1/models/%ff",
        b"/v1/modelsx",
        b"//v1/models",
        b"/v1//models",
        b"/V1/models",
        b"/v1/Models",
        b"/v1%2fmodels",
        b"/v1/chat/completions/",
        b"/v1/chat%2Fcompletions",
        b"/v1/./models",
        b"/x/../v1/models",
        b"/v1/models%00",
        b"/v1/chat/completions;x",
    ],
)
def test_other_spellings_are_other_paths(path: bytes) -> None:
    with pytest.raises(RouteNotFound):
        ROUTER.locate("GET", path)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", b"/v1/models", ("GET", "HEAD", "OPTIONS")),
        ("DELETE", b"/v1/models/x", ("GET", "HEAD", "OPTIONS")),
        ("GET", b"/v1/chat/completions", ("POST", "OPTIONS")),
        ("HEAD", b"/v1/chat/completions", ("POST", "OPTIONS")),
        ("BREW", b"/v1/chat/completions", ("POST", "OPTIONS")),
    ],
)
def test_a_wrong_method_learns_what_is_allowed(method: str, path: bytes, allow: tuple[str, ...]) -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        ROUTER.locate(method, path)
    assert caught.value.allow == allow


def test_options_has_no_handler_and_tells_what_is_allowed() -> None:
    match = ROUTER.locate("OPTIONS", b"/v1/models")
    assert (match.handler, match.allow) == (None, ("GET", "HEAD", "OPTIONS"))


def test_patterns_name_routes_for_counting() -> None:
    assert ROUTER.pattern_of(b"/v1/models/org/name") == "/v1/models/{id}"
    assert ROUTER.pattern_of(b"/v1/chat/completions") == "/v1/chat/completions"
    assert ROUTER.pattern_of(b"/etc/passwd") == UNMATCHED
    assert ROUTER.patterns["/v1/models"] == ("GET", "HEAD", "OPTIONS")
