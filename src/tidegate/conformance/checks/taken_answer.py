"""A generation as the checks of tools, schemas and reasoning take it: the answer, or why nothing can be said of it."""

from collections.abc import Iterator

from tidegate.conformance.answer import Choice, ToolCall, read_answer
from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange


def has_answer(exchange: Exchange) -> Iterator[Fault]:
    """The status is 200, and a choice came whole: it has a finish reason."""
    answer = read_answer(exchange)
    if exchange.ending is Ending.TIMED_OUT:
        raise CannotTell(f"no whole answer came in time ({exchange.detail})")
    if exchange.status is None:
        yield Fault(f"no response: {exchange.ending.value}")
    elif exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200: {exchange.body[:200].decode('utf-8', 'replace')}")
    elif answer.error is not None:
        yield Fault(f"the answer is an error: {str(answer.error)[:200]}")
    elif answer.choice().finish_reason is None:
        yield Fault("the first choice has no finish_reason")


def calls_of(choice: Choice) -> list[ToolCall]:
    """Returns the calls in the order of their indices."""
    return [choice.tool_calls[index] for index in sorted(choice.tool_calls)]


def called(exchange: Exchange, *, least: int = 1) -> list[ToolCall]:
    """Returns the calls of the first choice. Raises CannotTell where there are fewer than `least`."""
    calls = calls_of(answer_of(exchange).choice())
    if len(calls) < least:
        raise CannotTell(f"the model made {len(calls)} calls, {least} are needed")
    return calls


def is_cut(exchange: Exchange) -> bool:
    """Returns whether the token budget ended the first choice."""
    return answer_of(exchange).choice().finish_reason == "length"
