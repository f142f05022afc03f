"""Chat templates as an attack: brought along by a caller, or set up badly by an operator. Others notice nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread
from tidegate.cli.load_error import LoadError
from tidegate.text import template_env
from tidegate.text.template_env import BrokenTemplate, check_sandbox

CHAT, COMPLETION, TOKENIZE = "/v1/chat/completions", "/v1/completions", "/v1/tokenize"

LOOPS = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}"
HOSTILE = {
    "loops": LOOPS,
    "silent loops": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "long text": "{{ 'a' * 10 ** 9 }}",
    "doubling": "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "branching macro": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "big number": "{{ 9 ** 999999999 }}",
    "wide format": "{{ '%999999999d' % 1 }}",
}
ESCAPES = {
    "class chain": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "attr filter": "{{ messages | attr('__class__') }}{{ messages | attr('append') | attr('__self__') }}!",
    "format reference": "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}!",
    "format_map": "{{ '{a.__class__}'.format_map({'a': messages}) }}!",
    "stored format": "{{ ['{0.__class__}'] | map('format', messages) | list }}!",
    "bound method as filter": "{% set f = '{0.__class__}'.format %}{{ f(messages) }}!",
    "cycler globals": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "joiner globals": "{{ joiner.__init__.__globals__ }}",
    "namespace globals": "{{ namespace.__init__.__globals__ }}",
    "function globals": "{{ raise_exception.__globals__ }}{{ strftime_now.__closure__ }}",
    "self": "{{ self._TemplateReference__context }}",
    "generator frame": "{{ (messages | map('upper')).gi_frame.f_globals }}",
    "xmlattr keys": "{{ {'a b': 1} | xmlattr }}!",
    "include": "{% include '/etc/passwd' %}",
}
"""After a harmless rendering `!` is what is left: an escape that gives nothing is as good as a refusal."""


def choosing_template() -> str:
    """The operator's template, that does as the caller's variable `do` says."""
    cases = "".join(
        f"{{% if do == '{name}' %}}{source}{{% endif %}}" for name, source in [*HOSTILE.items(), *SAFE_TO_LOAD]
    )
    return cases + "{% for message in messages %}{{ message.content }}{% endfor %}"


SAFE_TO_LOAD = [(name, source) for name, source in ESCAPES.items() if name != "include"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    file = tmp_path_factory.mktemp("template") / "template.jinja"
    file.write_text(choosing_template(), "utf-8")
    with ServerThread("scripted", model__chat_template=str(file), limits__template_ms=60) as running:
        yield running
        assert running.baseline().blocks_used == 0


def ask(server: ServerThread, route: str = CHAT, **fields: Any) -> Answer:
    body = {"model": server.model, "messages": [{"role": "user", "content": "hi"}], **fields}
    return request(server.port, "POST", route, body)


def check_refused(answer: Answer, code: str, param: str) -> dict[str, Any]:
    assert answer.status == 400, answer.body
    error: dict[str, Any] = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    return error


@pytest.mark.parametrize("name", [*HOSTILE, *ESCAPES])
@pytest.mark.parametrize("route", [CHAT, TOKENIZE])
def test_a_template_in_a_request_is_refused_unread(server: ServerThread, route: str, name: str) -> None:  # SEC-7 SEC-8
    source = {**HOSTILE, **ESCAPES}[name]
    check_refused(ask(server, route, chat_template=source), "invalid_value", "chat_template")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_template_that_would_never_end_ends_for_its_caller_only(server: ServerThread, name: str) -> None:  # SEC-7
    pieces = [f"{index} ".encode().hex() for index in range(40)]
    script = {"pieces": pieces, "finish": "eos", "delays_s": [0.005]}
    with RawClient(server.port) as other:
        other.post(
            COMPLETION, {"model": server.model, "prompt": "a", "stream": True, "max_tokens": 99, "x_script": script}
        )
        answer = other.read_head()
        first = other.read_chunk()
        for route in (CHAT, TOKENIZE):
            error = check_refused(
                ask(server, route, chat_template_kwargs={"do": name}), "invalid_template_input", "messages"
            )
            assert error.get("limit", {"name": "template_ms"})["name"] in ("template_ms", "template_bytes")
        answer.body = first or b""
        other.read_body(answer)
    told = read_stream(answer.body)
    assert told.text() == "".join(f"{index} " for index in range(40))
    assert (told.num_done, told.findings, told.finish_reasons()) == (1, [], ["stop"])
    assert ask(server, max_tokens=2).status == 200


@pytest.mark.parametrize("name", dict(SAFE_TO_LOAD))
def test_the_sandbox_shows_nothing_even_of_an_operators_template(server: ServerThread, name: str) -> None:  # SEC-8
    answer = ask(server, max_tokens=1, echo=True, return_token_ids=True, chat_template_kwargs={"do": name})
    if answer.status == 200:
        text = bytes(answer.json()["prompt_token_ids"]).decode()
        assert "class" not in text
        assert "globals" not in text
        assert "0x" not in text
    else:
        error = check_refused(answer, "invalid_template_input", "messages")
        assert "0x" not in error["message"]
        assert "__" not in error["message"]


RESERVED = (
    "messages",
    "tools",
    "add_generation_prompt",
    "tokenize",
    "chat_template",
    "raise_exception",
    "range",
    "self",
)


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("route", [CHAT, TOKENIZE])
def test_variables_of_the_server_are_not_a_callers(server: ServerThread, route: str, name: str) -> None:  # SEC-7
    answer = ask(server, route, chat_template_kwargs={name: "x"})
    assert answer.status == 400
    assert answer.json()["error"]["param"].startswith("chat_template_kwargs")


def test_a_template_that_loads_files_stops_the_start(tmp_path: Path) -> None:  # SEC-8
    file = tmp_path / "template.jinja"
    file.write_text(ESCAPES["include"], "utf-8")
    with (
        pytest.raises(LoadError, match="cannot load other templates"),
        ServerThread("scripted", model__chat_template=str(file)),
    ):
        pass


@pytest.mark.parametrize("version", ["2.11.3", "3.0.0", "3.1.5", "3.1.5.post1"])
def test_an_engine_of_templates_with_holes_stops_the_start(  # SEC-8
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_env.jinja2, "__version__", version)
    with pytest.raises(LoadError, match=version), ServerThread("scripted"):
        pass


@pytest.mark.parametrize("version", ["3.1.6", "3.1.10", "3.2.0", "4.0"])
def test_later_versions_of_it_are_taken(version: str) -> None:  # SEC-8
    try:
        check_sandbox(version)
    except BrokenTemplate as error:
        pytest.fail(str(error))


def test_variables_with_a_million_members_stay_one_callers_affair(server: ServerThread) -> None:  # SEC-7
    variables = {"do": [0] * 100_000, "x": {str(index): index for index in range(10_000)}}
    body = {"model": server.model, "messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": variables}
    answer = request(server.port, "POST", CHAT, json.dumps(body).encode())
    assert answer.status in (200, 400)
    assert ask(server, max_tokens=2).status == 200


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"n": 2}])
def test_a_conversation_that_renders_to_nothing_is_the_callers_affair(
    server: ServerThread, fields: dict[str, Any]
) -> None:
    """It once reached the engine, which refused it: a 502 for a request that can never succeed."""
    answer = ask(server, messages=[{"role": "user", "content": ""}], **fields)
    check_refused(answer, "invalid_template_input", "messages")
