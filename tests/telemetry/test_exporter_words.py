"""What OpenTelemetry's exporter says of its failures is kept, and no secret that an exception quotes."""

import logging
from collections.abc import Iterator

import pytest

from tidegate.telemetry.exporter_words import LOGGER, MAX_CHARS, ExporterWords

_log = logging.getLogger(f"{LOGGER}.otlp.proto.http.trace_exporter")


@pytest.fixture
def words() -> Iterator[ExporterWords]:
    made = ExporterWords()
    made.listen()
    yield made
    made.stop()


def test_the_first_and_the_last_word_are_kept_until_they_are_taken(words: ExporterWords) -> None:
    for number in (1, 2, 3):
        _log.warning("failed %d", number)
    assert words.take() == "failed 1 failed 3"
    assert words.take() == ""
    _log.error("alone")
    assert words.take() == "alone"


def test_an_exception_is_named_and_not_quoted(words: ExporterWords) -> None:
    _log.error("batch code: %s, reason: %s", None, ValueError("header value: 'collector-secret'"))
    assert words.take() == "batch code: None, reason: ValueError"


@pytest.mark.parametrize(("message", "said"), [("%d", ("x",)), ("%s %s", ("x",)), ("a\x1b[2J", ())])
def test_words_that_cannot_be_written_do_not_end_the_thread(
    words: ExporterWords, message: str, said: tuple[str, ...]
) -> None:
    words.emit(logging.LogRecord(LOGGER, logging.ERROR, "", 1, message, said, None))
    taken = words.take()
    assert taken
    assert "\x1b" not in taken


def test_what_is_said_is_bounded(words: ExporterWords) -> None:
    _log.error("x" * 10 * MAX_CHARS)
    assert len(words.take()) < 2 * MAX_CHARS


def test_nobody_else_hears_it(words: ExporterWords) -> None:
    other, root = ExporterWords(), logging.getLogger()
    root.addHandler(other)
    try:
        _log.error("not for the log")
    finally:
        root.removeHandler(other)
    assert (words.take(), other.take()) == ("not for the log", "")


def test_after_the_end_nothing_is_heard(words: ExporterWords) -> None:
    words.stop()
    words.stop()
    _log.info("lost")
    assert words.take() == ""
