"""Conversations in which a tool was called: made from an answer, as a client makes them."""

from typing import Any

from tidegate.conformance.checks.taken_answer import called
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at


def with_results(exchange: Exchange, *, question: str, result: Any) -> list[Any]:
    """Returns the question, the answer's message as it came, and a result for each of its calls. Raises CannotTell
    where there is no call.
    """
    calls = called(exchange)
    message = at(exchange.json, "choices", 0, "message")
    results = [{"role": "tool", "tool_call_id": call.id, "content": result} for call in calls]
    return [{"role": "user", "content": question}, message, *results]
