"""The deprecated `function_call` of a message."""

from collections.abc import Iterator

from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.checks.taken_answer import is_cut
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at


def function_is_called(exchange: Exchange, *, name: str) -> Iterator[Fault]:
    """The whole answer's message has a `function_call` of the name, with arguments as a string; the reason is
    `function_call` or `stop`.
    """
    choice = answer_of(exchange).choice()
    call = at(exchange.json, "choices", 0, "message", "function_call")
    if not isinstance(call, dict) and is_cut(exchange):
        raise CannotTell("the token budget ended the answer before the call")
    if at(call, "name") != name or not isinstance(at(call, "arguments"), str):
        yield Fault(f"message.function_call is {str(call)[:150]}, expected a call of {name!r}")
    if choice.finish_reason not in ("function_call", "stop", "length"):
        yield Fault(f"finish_reason is {choice.finish_reason!r}, expected 'function_call' or 'stop'")
