"""Custom tools: plain text in place of arguments."""

import re
from collections.abc import Iterator

from tidegate.conformance.checks.taken_answer import called, is_cut
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange


def custom_input_matches(exchange: Exchange, *, name: str, pattern: str) -> Iterator[Fault]:
    """Each call is of the custom tool, and its input matches from end to end."""
    for call in called(exchange):
        if call.kind != "custom" or call.name != name:
            yield Fault(f"tool_calls[{call.index}] is of type {call.kind!r} and name {call.name!r}, expected {name!r}")
        elif re.fullmatch(pattern, call.arguments) is None:
            if is_cut(exchange):
                raise CannotTell("the token budget ended the answer inside the call")
            yield Fault(f"custom.input is {call.arguments[:150]!r}, which does not match {pattern}")
