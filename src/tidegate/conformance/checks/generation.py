"""Whether a generation came at all. Checks of what it says begin here: a refusal is told once, not ten times."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import Answer, read_answer
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange


def generates(exchange: Exchange) -> Iterator[Fault]:
    """Status 200, a response that ends as its framing promised, JSON or an event stream, and no error inside it.

    Raises CannotTell where our own patience ended first: slowness breaks none of the rules that cases of answers are
    about.
    """
    if exchange.ending is Ending.TIMED_OUT and not exchange.is_done:
        raise CannotTell(f"the answer had not ended {exchange.detail or 'in time'}".rstrip())
    faults = list(has_status(exchange, allowed=(200,)))
    yield from faults
    if faults:
        return
    if not exchange.is_stream and not isinstance(exchange.json, dict):
        yield Fault(f"the body is no JSON object: {exchange.body[:100]!r}")
    elif exchange.is_stream and not exchange.chunks:
        yield Fault("the stream has no event")
    elif (error := read_answer(exchange).error) is not None:
        yield Fault(f"an error instead of an answer: {str(error)[:200]}")


def whole_body(exchange: Exchange) -> dict[str, Any]:
    """Returns the body of a whole answer. Raises CannotTell where none came: `generates` says what came instead."""
    if exchange.status != 200 or not isinstance(exchange.json, dict):
        raise CannotTell("no answer came that could be looked at")
    return exchange.json


def stream_chunks(exchange: Exchange) -> list[tuple[int, dict[str, Any]]]:
    """Returns the chunks that are JSON objects, each with its event's index. Raises CannotTell where no stream came."""
    if exchange.status != 200 or not exchange.is_stream:
        raise CannotTell("no stream came that could be looked at")
    return [(index, chunk) for index, chunk in exchange.numbered_chunks if isinstance(chunk, dict)]


def answer_of(exchange: Exchange) -> Answer:
    """Returns what was generated, whole or streamed. Raises CannotTell where nothing was."""
    if exchange.status != 200 or not (exchange.is_stream or isinstance(exchange.json, dict)):
        raise CannotTell("no answer came that could be looked at")
    answer = read_answer(exchange)
    if answer.error is not None or not answer.choices:
        raise CannotTell("the answer holds no generation that could be looked at")
    return answer


def usage_of(exchange: Exchange) -> dict[str, Any]:
    """Returns the usage that was told. Raises CannotTell where none was, or one without its three counts."""
    usage = answer_of(exchange).usage
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    if not isinstance(usage, dict) or any(type(usage.get(name)) is not int for name in names):
        raise CannotTell("the answer tells no usage with the three counts")
    return usage
