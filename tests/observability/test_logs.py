"""Log lines as bytes on a stream, for machines and for people."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from tidegate.observability.log_observer import LogObserver
from tidegate.observability.logs import (
    MAX_TRACEBACK_LINE_CHARS,
    MAX_TRACEBACK_LINES,
    LibraryHandler,
    LogFormat,
    LogSettings,
    build_logger,
    configure_logging,
    log_labels,
)
from tidegate.observability.observer import EngineChanged, RequestEnded

ENDED = RequestEnded(
    request_id="req1",
    wire_id="caller\x1b[0m",
    route="/v1/chat/completions",
    model="m",
    outcome="stop",
    status=200,
    duration_s=1.23456789,
    num_prompt_tokens=5,
    num_completion_tokens=9,
    is_stream=True,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def logger(
    stream: io.StringIO, level: str = "info", kind: LogFormat = LogFormat.AUTO
) -> structlog.typing.FilteringBoundLogger:
    return build_logger(LogSettings(level, kind), stream, wall=lambda: 1_700_000_000.5)


def records(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_line_of_json_with_time_and_level_first() -> None:
    stream = io.StringIO()
    logger(stream).info("hello\nworld", n=1, name="\x1b[2J")
    assert stream.getvalue() == (
        '{"time":"2023-11-14T22:13:20.500Z","level":"info","event":"hello\\\\x0aworld","n":1,"name":"\\\\x1b[2J"}\n'
    )


def test_a_person_at_a_terminal_gets_words() -> None:
    stream = Terminal()
    logger(stream).warning("watch\x1b[2Jout", n=1, nothing=None)
    assert stream.getvalue() == "2023-11-14T22:13:20.500Z \x1b[33mwarning \x1b[0m watch\\x1b[2Jout n=1\n"


def test_the_setting_wins_over_the_terminal() -> None:
    stream = Terminal()
    logger(stream, kind=LogFormat.JSON).info("x")
    assert records(stream)[0]["event"] == "x"
    plain = io.StringIO()
    logger(plain, kind=LogFormat.CONSOLE).info("x")
    assert plain.getvalue().endswith("x\n")


def test_less_severe_records_are_not_written() -> None:
    stream = io.StringIO()
    log = logger(stream, "warning")
    log.info("no")
    log.warning("yes")
    assert [record["event"] for record in records(stream)] == ["yes"]
    with pytest.raises(ValueError, match="'loud' is none of debug, info"):
        LogSettings("loud")


@pytest.mark.parametrize("kind", [LogFormat.JSON, LogFormat.CONSOLE])
def test_an_exception_is_shown_without_locals_and_escaped(kind: LogFormat) -> None:
    stream = io.StringIO()
    local_secret = "do not" + " show"
    try:
        raise ValueError("bad \x1b[31m" + "x" * 1000)
    except ValueError:
        logger(stream, kind=kind).exception("broke")
    shown = stream.getvalue()
    assert "ValueError: bad \\" in shown
    assert "Traceback" in shown
    assert "\x1b[31mx" not in shown
    assert "x" * 400 not in shown
    assert local_secret not in shown


def test_a_traceback_has_a_bounded_number_of_bounded_lines() -> None:  # OVL-8 SEC-29
    def fail(depth: int) -> None:
        if not depth:
            raise ValueError("x" * 5000)
        try:
            fail(depth - 1)
        except ValueError as cause:
            raise ValueError(f"at {depth}") from cause

    stream = io.StringIO()
    try:
        fail(60)
    except ValueError:
        logger(stream, kind=LogFormat.JSON).exception("broke")
    shown = records(stream)[0]["traceback"]
    assert isinstance(shown, list)
    assert len(shown) == MAX_TRACEBACK_LINES
    assert "at 60" in shown[-1], "the last lines stay"
    assert max(map(len, shown)) < MAX_TRACEBACK_LINE_CHARS + 50


def test_a_stream_that_cannot_be_written_hurts_nobody() -> None:
    logger(Broken()).error("lost")
    closed = io.StringIO()
    log = logger(closed)
    closed.close()
    log.error("lost")


def test_server_faults_and_engine_losses_stand_out() -> None:
    stream = io.StringIO()
    observer = LogObserver(logger(stream))
    observer.request_ended(ENDED)
    observer.request_refused("/v1/x", 429, "queue_full")
    observer.request_refused("/v1/x", 500, "internal_error")
    observer.engine_changed(EngineChanged(is_ready=True, epoch=1, num_restarts=0))
    observer.engine_changed(EngineChanged(is_ready=False, epoch=1, num_restarts=0, reason="signal 9"))
    observer.http_response("/healthz", "GET", 200)
    observer.tokens_delivered(1, None)
    observer.request_received("/v1/x")
    assert [(record["level"], record["event"]) for record in records(stream)] == [
        ("error", "request refused"),
        ("info", "engine available"),
        ("warning", "engine gone"),
    ]


def test_records_of_libraries_take_the_same_form() -> None:
    stream = io.StringIO()
    handler = LibraryHandler(logger(stream))
    handler.emit(logging.LogRecord("lib", 35, "f", 1, "to\x1b %s", ("you",), None))
    handler.emit(logging.LogRecord("lib", logging.ERROR, "f", 1, "%d", ("no number",), None))
    first, second = records(stream)
    assert (first["level"], first["event"], first["logger"]) == ("warning", "to\\x1b you", "lib")
    assert second["event"] == "a record of lib that cannot be formatted"


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("restored_logging")
def test_the_composition_root_gets_one_form_for_everything() -> None:
    stream = io.StringIO()
    configure_logging(LogSettings(), stream, wall=lambda: 0.0).info("ours")
    structlog.get_logger().info("default")
    logging.getLogger("lib").warning("theirs")
    logging.getLogger("lib").debug("never")
    assert [record["event"] for record in records(stream)] == ["ours", "default", "theirs"]


def test_a_record_about_a_request_names_it() -> None:
    stream = io.StringIO()
    handler = LibraryHandler(build_logger(LogSettings(format=LogFormat.JSON), stream, lambda: 0.0))
    record = logging.LogRecord("lib", logging.ERROR, "x", 1, "it broke", (), None)
    record.__dict__.update(log_labels(wire_id="mine", trace_id="abc"))
    handler.emit(record)
    line = json.loads(stream.getvalue())
    assert (line["event"], line["wire_id"], line["trace_id"], line["logger"]) == ("it broke", "mine", "abc", "lib")
