"""Bodies that are just over a limit that the contract page lists. Each raises CannotTell where it lists none."""

from typing import Any

from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

MOST = 100_000
"""A greater limit is not tried: the request would be too large."""


def _limit(page: Exchange, name: str, *, most: int = MOST) -> int:
    value = at(page.json, "limits", name, "value")
    if not isinstance(value, int) or isinstance(value, bool) or value > most:
        raise CannotTell(f"the contract page says of {name}: {value!r}")
    return value


def _model(page: Exchange) -> dict[str, Any]:
    return {"model": str(at(page.json, "models", 0, "id"))}


def make_stops(page: Exchange) -> Any:
    return chat_body(stop=[f"stop {number}" for number in range(_limit(page, "stop_strings") + 1)]) | _model(page)


def make_messages(page: Exchange) -> Any:
    message = {"role": "user", "content": "x"}
    return chat_body(messages=[message] * (_limit(page, "messages") + 1)) | _model(page)


def make_tools(page: Exchange) -> Any:
    tools = [{"type": "function", "function": {"name": f"f{number}"}} for number in range(_limit(page, "tools") + 1)]
    return chat_body(tools=tools) | _model(page)


def make_bias(page: Exchange) -> Any:
    count = _limit(page, "logit_bias_entries") + 1
    return chat_body(logit_bias={str(number): 1 for number in range(count)}) | _model(page)


def make_depth(page: Exchange) -> Any:
    value: Any = 1
    for _ in range(_limit(page, "json_depth", most=500) + 1):
        value = [value]
    return chat_body(metadata=value) | _model(page)


def make_max_tokens(page: Exchange) -> Any:
    return chat_body(max_tokens=_limit(page, "context_length", most=10_000_000) + 1) | _model(page)


def make_prompts(page: Exchange) -> Any:
    return completion_body(["x"] * (_limit(page, "prompts") + 1)) | _model(page)
