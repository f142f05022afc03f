"""One line for each request, from what its reply and its work say."""

import io
import json
from itertools import permutations
from typing import Any

import msgspec
import pytest

from tidegate.observability.access_log import AccessLog, AccessRecord, HttpEnded
from tidegate.observability.logs import LogFormat, LogSettings, build_logger
from tidegate.observability.observer import RequestEnded

REPLY = HttpEnded(
    wire_id="caller",
    route="/v1/chat/completions",
    method="POST",
    status=200,
    outcome="ok",
    duration_s=1.23456789,
    key_name="anonymous",
    peer="127.0.0.1:5",
    num_retries=2,
)
WORK = RequestEnded(
    request_id="req1",
    wire_id="caller",
    route="/v1/chat/completions",
    model="m",
    outcome="stop",
    status=200,
    duration_s=1.1,
    num_prompt_tokens=5,
    num_completion_tokens=9,
    first_token_s=0.5,
    queue_s=0.25,
    num_retries=2,
    is_stream=True,
)


def lines(reply: HttpEnded = REPLY, work: RequestEnded | None = WORK) -> list[str]:
    stream = io.StringIO()
    logger = build_logger(LogSettings("info", LogFormat.JSON), stream, wall=lambda: 1_700_000_000.5)
    AccessLog(logger).write(reply, work)
    return stream.getvalue().split("\n")[:-1]


def test_a_line_says_who_what_how_it_ended_tokens_and_times() -> None:
    (line,) = lines()
    record = json.loads(line)
    assert record["event"] == "request ended"
    assert (record["key_name"], record["peer"], record["wire_id"]) == ("anonymous", "127.0.0.1:5", "caller")
    assert (record["route"], record["method"], record["model"]) == ("/v1/chat/completions", "POST", "m")
    assert (record["status"], record["outcome"]) == (200, "stop")
    assert (record["num_prompt_tokens"], record["num_completion_tokens"]) == (5, 9)
    assert (record["queue_s"], record["first_token_s"], record["duration_s"]) == (0.25, 0.5, 1.234568)
    assert record["num_retries"] == 2
    assert "code" not in record


def test_without_work_the_line_is_of_the_exchange_alone() -> None:
    (line,) = lines(msgspec.structs.replace(REPLY, status=404, outcome="error", code="route_not_found"), None)
    record = json.loads(line)
    assert (record["status"], record["outcome"], record["code"]) == (404, "error", "route_not_found")
    assert "model" not in record


@pytest.mark.parametrize(
    ("code", "level"), [("queue_full", "info"), ("internal_error", "error"), ("engine_lost", "error")]
)
def test_faults_of_ours_stand_out(code: str, level: str) -> None:
    (line,) = lines(msgspec.structs.replace(REPLY, code=code), None)
    assert json.loads(line)["level"] == level


@pytest.mark.parametrize(
    "hostile",
    [
        'a\n{"event":"request ended","status":200}',
        "a\r\nb",
        "\x1b[2J\x1b]0;title\x07",
        "\u202egnp.exe\u2066",
        "\u2028\u0085",
        "Bearer sk-abcdefgh12345678",
    ],
)
def test_no_text_of_a_caller_breaks_the_line_or_colours_it(hostile: str) -> None:  # SEC-29
    reply = msgspec.structs.replace(REPLY, user_agent=hostile, forwarded_for=hostile, key_name=hostile)
    (line,) = lines(reply, msgspec.structs.replace(WORK, model=hostile, wire_id=hostile))
    assert line.isprintable()
    assert "sk-abcdefgh" not in line
    assert json.loads(line)["status"] == 200


STEPS: dict[str, Any] = {
    "reply": lambda record: record.end_reply(REPLY),
    "work": lambda record: record.end_work(WORK),
}


@pytest.mark.parametrize("order", list(permutations(STEPS)))
def test_two_ends_in_either_order_make_one_line(order: tuple[str, ...]) -> None:
    written: list[Any] = []
    record = AccessRecord(lambda reply, work: written.append((reply, work)))
    record.begin_work()
    for step in order:
        assert not written
        STEPS[step](record)
    assert written == [(REPLY, WORK)]


def test_a_reply_that_no_work_was_done_for_is_written_at_once() -> None:
    written: list[Any] = []
    AccessRecord(lambda reply, work: written.append((reply, work))).end_reply(REPLY)
    assert written == [(REPLY, None)]
