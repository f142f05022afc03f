"""Requests that stand at a limit, or so much beyond it: made from the limits that a server publishes. Pure.

What stands at a limit is stopped by a later one, the context, through `max_tokens`: so the server does no work.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

OVER_ANY_CONTEXT = 100_000_000
Parts = dict[str, Any]


def limit_of(contract: Exchange, name: str) -> int:
    """Returns the value that /v1/contract publishes. Raises CannotTell."""
    value = at(contract.json, "limits", name, "value")
    if type(value) is not int:
        raise CannotTell(f"/v1/contract publishes no limit {name}")
    return value


def fields_at(contract: Exchange, *, name: str, extra: int, base: Mapping[str, Any]) -> Parts:
    """Returns a body that has as much of `name` as is allowed, and `extra` more."""
    body = {**base, "max_tokens": OVER_ANY_CONTEXT}
    count = limit_of(contract, name) + extra
    vocabulary_size = at(contract.json, "models", 0, "vocabulary_size")
    if name == "logit_bias_entries" and extra == 0 and type(vocabulary_size) is int:
        count = min(count, vocabulary_size)  # there are no other ids to name
    return body | FIELDS[name](count)


def length_at(contract: Exchange, *, name: str, extra: int) -> str:
    """Returns a Content-Length at a limit, and `extra` more."""
    return str(limit_of(contract, name) + extra)


def path_at(contract: Exchange, *, name: str, extra: int) -> str:
    """Returns the path of a model whose whole target, `/v1` included, has as many bytes as is allowed, and `extra`."""
    return "/models/" + "a" * (limit_of(contract, name) + extra - len("/v1/models/"))


def rest_of_context(contract: Exchange, short: Exchange, *, extra: int, base: Mapping[str, Any]) -> Parts:
    """Returns the request `short`, with `max_tokens` as the context leaves for it, and `extra` more."""
    num_prompt = at(short.json, "usage", "prompt_tokens")
    if type(num_prompt) is not int:
        raise CannotTell("the short request tells no usage")
    return {**base, "max_tokens": limit_of(contract, "context_length") - num_prompt + extra}


def over_long_prompt(models: Exchange, *, base: Mapping[str, Any]) -> Parts:
    """Returns a chat whose prompt has more words than any context that the list of models tells has tokens. Raises
    CannotTell where it tells none.
    """
    model = at(models.json, "data", 0)
    told = [at(model, "max_model_len"), at(model, "context_length"), at(model, "meta", "n_ctx_train")]
    lengths = [value for value in told if type(value) is int]
    if not lengths:
        raise CannotTell("the list of models does not tell how long a context is")
    if max(lengths) > MAX_CONTEXT:
        raise CannotTell(f"a context of {max(lengths)} tokens is too long to fill for a test")
    return {**base, "messages": [{"role": "user", "content": "word " * (max(lengths) + 100)}]}


MAX_CONTEXT = 300_000


def _nested(depth: int) -> Parts:
    """The body is the first level."""
    value: Any = 0
    for _ in range(depth - 1):
        value = [value]
    return {"zzz_unknown": value}


def _messages(count: int) -> Parts:
    return {"messages": [{"role": "user", "content": "x"}] * count}


def _tools(count: int) -> Parts:
    return {"tools": [{"type": "function", "function": {"name": f"t{number}"}} for number in range(count)]}


def _sized(num_bytes: int, wrap: Callable[[str], Any]) -> Any:
    """Returns what `wrap` makes of a filling text, `num_bytes` long as JSON without spaces."""
    empty = len(json.dumps(wrap(""), separators=(",", ":")))
    return wrap("d" * (num_bytes - empty))


def _tool_bytes(num_bytes: int) -> Parts:
    def wrap(text: str) -> Any:
        return [{"type": "function", "function": {"name": "t", "description": text}}]

    return {"tools": _sized(num_bytes, wrap)}


def _format(schema: Any) -> Parts:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}


def _schema_bytes(num_bytes: int) -> Parts:
    return _format(_sized(num_bytes, lambda text: {"type": "string", "description": text}))


def _schema_depth(depth: int) -> Parts:
    schema: Any = {"type": "string"}
    for _ in range(depth - 1):
        schema = {"type": "array", "items": schema}
    return _format(schema)


FIELDS: Mapping[str, Callable[[int], Parts]] = {
    "json_depth": _nested,
    "messages": _messages,
    "prompts": lambda count: {"prompt": ["x"] * count},
    "choices": lambda count: {"n": count},
    "stop_strings": lambda count: {"stop": [f"qq{number}" for number in range(count)]},
    "logit_bias_entries": lambda count: {"logit_bias": {str(number): 1 for number in range(count)}},
    "tools": _tools,
    "tool_bytes": _tool_bytes,
    "schema_bytes": _schema_bytes,
    "schema_depth": _schema_depth,
}
"""Limit to the fields of a request that has so much of it."""
