"""The spans of one request: which there are, how they lie, what they are called, and what stands in them."""

import importlib
import pkgutil
from typing import Any

import msgspec
import pytest
from opentelemetry.semconv import attributes
from opentelemetry.semconv._incubating import attributes as incubating

from harness.traced import PARENT, RECEIVED, SPAN, TRACE, recorded_reply, recorded_work
from tidegate.observability.access_log import HttpEnded
from tidegate.observability.observer import RequestEnded
from tidegate.observability.request_spans import SpanSite, spans_of
from tidegate.observability.request_trace import child_span_id
from tidegate.observability.span import Span, SpanKind

SITE = SpanSite("host-1")
CHAT = "/v1/chat/completions"


def spans(reply: HttpEnded, work: RequestEnded | None) -> dict[str, Span]:
    made = spans_of(reply, work, SITE)
    assert made is not None
    found = {span.name: span for span in made.spans}
    assert len(found) == len(made.spans)
    assert all(span.start <= span.end for span in made.spans)
    return found


def test_a_request_has_a_span_for_each_stretch_of_its_life() -> None:
    found = spans(recorded_reply(), recorded_work())
    stretches = {name: (round(s.start - RECEIVED, 6), round(s.end - RECEIVED, 6)) for name, s in found.items()}
    assert stretches == {
        "POST /v1/chat/completions": (0.0, 2.0),
        "chat m": (0.1, 1.9),
        "queue": (0.1, 0.4),
        "prefill": (0.4, 0.7),
        "decode": (0.7, 1.8),
        "write": (0.5, 2.0),
    }
    server, work = found["POST /v1/chat/completions"], found["chat m"]
    assert (server.span_id, server.parent_id, server.kind) == (SPAN, PARENT, SpanKind.SERVER)
    assert (work.parent_id, work.kind) == (SPAN, SpanKind.INTERNAL)
    assert work.span_id == child_span_id(SPAN, "work"), "what engines are told is the parent of their spans"
    assert {found[name].parent_id for name in ("queue", "prefill", "decode")} == {work.span_id}
    assert found["write"].parent_id == SPAN
    assert not any(span.error for span in found.values())


def test_names_are_those_of_the_conventions() -> None:
    found = spans(recorded_reply(), recorded_work(key_name="team", num_retries=1))
    assert found["chat m"].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "tidegate",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.7,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "server.address": "host-1",
        "server.port": 8000,
        "tidegate.revision": "abc",
    }
    server = found["POST /v1/chat/completions"].attributes
    assert server["http.route"] == server["url.path"] == "/v1/chat/completions"
    assert server["http.response.status_code"] == 200
    assert (server["client.address"], server["client.port"]) == ("10.0.0.9", 4000)
    assert server["http.request.header.x-request-id"] == ("mine",)
    assert server["tidegate.outcome"] == "stop"


ENDS: dict[str, tuple[dict[str, Any], dict[str, Any] | None, str | None, str | None, set[str]]] = {
    "a caller's mistake": ({"status": 400, "code": "invalid_value", "outcome": "error"}, None, None, None, set()),
    "no route": ({"status": 404, "code": "route_not_found", "outcome": "error"}, None, None, None, set()),
    "refused by the gate": (
        {"status": 429, "code": "queue_full", "outcome": "error"},
        {"outcome": "error", "code": "queue_full", "queue_s": None, "first_token_s": None},
        None,
        "queue_full",
        {"queue"},
    ),
    "refused after the head of its stream": (
        {},
        {"outcome": "error", "code": "no_capacity", "queue_s": None, "first_token_s": None},
        "no_capacity",
        "no_capacity",
        {"queue"},
    ),
    "no room for its body": (
        {"status": 503, "code": "no_capacity", "outcome": "error"},
        None,
        "no_capacity",
        None,
        set(),
    ),
    "a fault of ours": ({"status": 500, "outcome": "error"}, None, "500", None, set()),
    "the engine was lost before its first word": (
        {"status": 502, "code": "engine_lost", "outcome": "error"},
        {"outcome": "error", "code": "engine_lost", "queue_s": None, "first_token_s": None},
        "engine_lost",
        "engine_lost",
        {"queue"},
    ),
    "the engine was lost in the stream": (
        {},
        {"outcome": "error", "code": "engine_lost"},
        "engine_lost",
        "engine_lost",
        {"queue", "prefill", "decode"},
    ),
    "the client went in the prefill": (
        {"status": None, "outcome": "client_gone"},
        {"outcome": "client_gone", "first_token_s": None, "status": None},
        None,
        "client_gone",
        {"queue", "prefill"},
    ),
    "the deadline passed": (
        {"status": 504, "code": "deadline_exceeded", "outcome": "error"},
        {"outcome": "deadline", "code": "deadline_exceeded", "queue_s": None, "first_token_s": None},
        "deadline_exceeded",
        "deadline_exceeded",
        {"queue"},
    ),
    "nothing was to be generated": ({}, {"outcome": "read", "first_token_s": None}, None, None, {"queue", "prefill"}),
}


@pytest.mark.parametrize(("reply", "work", "server_error", "work_error", "stages"), ENDS.values(), ids=ENDS)
def test_an_error_is_what_went_wrong_on_our_side(
    reply: dict[str, Any],
    work: dict[str, Any] | None,
    server_error: str | None,
    work_error: str | None,
    stages: set[str],
) -> None:
    found = spans(recorded_reply(**reply), None if work is None else recorded_work(**work))
    server = found["POST /v1/chat/completions"]
    assert server.error == server.attributes.get("error.type") == server_error
    assert {"queue", "prefill", "decode"} & found.keys() == stages
    if work is not None:
        assert found["chat m"].error == found["chat m"].attributes.get("error.type") == work_error


CUTS: dict[str, tuple[dict[str, Any], str, float, dict[str, Any]]] = {
    "in the gate": ({"queue_s": None, "first_token_s": None}, "queue", 1.2, {"admitted_s": None}),
    "in the engine's queue": ({"queue_s": None, "first_token_s": None}, "queue", 1.2, {}),
    "in the prefill": ({"first_token_s": None}, "prefill", 1.2, {}),
    "between tokens": ({}, "decode", 1.8, {}),
}


@pytest.mark.parametrize(("work", "name", "end_s", "details"), CUTS.values(), ids=CUTS)
def test_the_stage_that_was_cut_off_says_so_and_ends_with_the_work(
    work: dict[str, Any], name: str, end_s: float, details: dict[str, Any]
) -> None:
    made = recorded_work(outcome="deadline", code="deadline_exceeded", **work)
    assert made.details is not None
    told = msgspec.structs.replace(made.details, left_s=1.2, **details)
    found = spans(recorded_reply(), msgspec.structs.replace(made, details=told))
    stages = {name: found[name] for name in ("queue", "prefill", "decode") if name in found}
    assert [stage.name for stage in stages.values() if stage.error == "deadline_exceeded"] == [name]
    assert [stage.name for stage in stages.values() if "error.type" in stage.attributes] == [name]
    assert round(stages[name].end - RECEIVED, 6) == end_s
    assert round(found["chat m"].end - RECEIVED, 6) == 1.2
    has_waited_out = name != "queue"
    assert stages["queue"].attributes["tidegate.queue.outcome"] == (
        "started" if has_waited_out else "deadline_exceeded"
    )
    gate_s = stages["queue"].attributes.get("tidegate.queue.gate_s")
    assert gate_s == (None if "admitted_s" in details else pytest.approx(0.1))
    assert ("gen_ai.response.id" in found["chat m"].attributes) is has_waited_out
    assert ("gen_ai.usage.input_tokens" in found["chat m"].attributes) is has_waited_out


def test_a_whole_answer_has_no_time_to_its_first_chunk() -> None:
    found = spans(recorded_reply(), recorded_work(is_stream=False))
    assert "gen_ai.response.time_to_first_chunk" not in found["chat m"].attributes


ODD = {
    "no route": ({"route": "unmatched", "method": "GET"}, "GET", "GET", None),
    "a method of the caller's own": ({"method": "other"}, "HTTP /v1/chat/completions", "_OTHER", CHAT),
    "neither": ({"route": "unmatched", "method": "other"}, "HTTP", "_OTHER", None),
}


@pytest.mark.parametrize(("reply", "name", "method", "route"), ODD.values(), ids=ODD)
def test_what_a_caller_invents_is_in_no_name(reply: dict[str, Any], name: str, method: str, route: str | None) -> None:
    attributes = spans(recorded_reply(**reply), None)[name].attributes
    assert attributes["http.request.method"] == method
    assert attributes.get("http.route") == attributes.get("url.path") == route


def test_every_name_that_is_not_ours_is_one_of_the_conventions() -> None:
    known = {
        value
        for package in (attributes, incubating)
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
        for name, value in vars(importlib.import_module(module.name)).items()
        if name.isupper() and isinstance(value, str)
    }
    work = recorded_work(num_retries=1)
    assert work.details is not None
    full = {"seed": 1, "output_type": "json", "num_choices": 2, "num_reasoning_tokens": 1, "top_p": 0.5, "top_k": 4}
    details = msgspec.structs.replace(work.details, presence_penalty=0.5, frequency_penalty=0.5, **full)
    found = spans(recorded_reply(user_agent="x"), msgspec.structs.replace(work, details=details))
    names = {name for span in found.values() for name in span.attributes}
    assert {"gen_ai.request.seed", "gen_ai.output.type", "gen_ai.request.top_k"} <= names
    own = {name for name in names if name.startswith("tidegate.")}
    assert names - own - known == {"http.request.header.x-request-id"}, "headers are named by a pattern"


def test_what_is_not_recorded_has_no_spans() -> None:
    assert spans_of(recorded_reply(is_recorded=False), recorded_work(), SITE) is None
    assert "chat m" not in spans(recorded_reply(), recorded_work(details=None))


def test_a_reply_without_a_status_was_never_written() -> None:
    assert "write" not in spans(recorded_reply(first_byte_s=None, status=None), None)


def test_work_that_ends_after_its_reply_has_no_negative_time() -> None:
    work = recorded_work(duration_s=0.05)
    assert spans(recorded_reply(duration_s=0.01, first_byte_s=0.02), work)["chat m"].start >= RECEIVED


def test_what_a_caller_writes_into_a_header_is_cleaned() -> None:
    found = spans(recorded_reply(user_agent="curl\x1b[2J Bearer sk-abcdefghijkl"), None)
    text = str(found["POST /v1/chat/completions"].attributes["user_agent.original"])
    assert "\x1b" not in text
    assert "abcdefghijkl" not in text


def test_a_route_with_a_name_in_it_tells_no_path() -> None:
    found = spans(recorded_reply(route="/v1/models/{id}", method="GET"), None)
    assert "url.path" not in found["GET /v1/models/{id}"].attributes


def test_facts_for_spans_are_not_in_the_log() -> None:
    assert "wire" not in msgspec.structs.asdict(recorded_work())
    assert TRACE in str(spans_of(recorded_reply(), None, SITE))
