"""Facts: what of an exchange can be compared with the same exchange of another server.

Decides what is left out because it differs between any two answers (ids, times, how text fell into chunks) and what is
kept, each under a name. Does not know: which difference matters.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.conformance.answer import Answer, Choice, read_answer
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, NOT_JSON, at, read_json

FLEETING_HEADERS = frozenset(
    ("date", "server", "content-length", "connection", "keep-alive", "transfer-encoding", "age")
)
"""Headers that say nothing about the contract, or are another with each answer. Others are compared by name: their
values are checked by the cases."""


@dataclass(frozen=True, slots=True)
class TokenFact:
    """A chosen token and its log-probability; None where it is no number."""

    token: str
    logprob: float | None
    runner_up: float | None
    """The best log-probability of another token, where alternatives were asked for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """`request`: digest of the body that was sent. `shape`: path to the names of the JSON types that stand there, list
    indices left out. `grammar`: kinds of the stream's chunks in order, runs of one kind as one. `texts`, `finishes`,
    `calls`: by choice.
    """

    request: str
    ending: str
    status: int | None
    content_type: str
    headers: frozenset[str]
    error: tuple[str | None, str | None, str | None] | None
    shape: Mapping[str, frozenset[str]]
    grammar: tuple[str, ...]
    framing: frozenset[str]
    texts: Mapping[int, str]
    finishes: Mapping[int, tuple[str, ...]]
    calls: Mapping[int, tuple[tuple[str, Any], ...]]
    usage: Mapping[str, int]
    tokens: Mapping[int, tuple[TokenFact, ...]]
    is_sampled: bool


def read_facts(exchange: Exchange) -> Facts:
    """Returns what can be compared."""
    answer = read_answer(exchange)
    bodies = exchange.chunks if exchange.is_stream else (exchange.json,)
    return Facts(
        request=hashlib.sha256(exchange.request.partition(b"\r\n\r\n")[2]).hexdigest(),
        ending=exchange.ending.name,
        status=exchange.status,
        content_type=exchange.headers.get("content-type", "").partition(";")[0].strip().lower(),
        headers=frozenset(exchange.headers) - FLEETING_HEADERS,
        error=_error_of(answer.error),
        shape=_shape_of(bodies),
        grammar=_grammar_of(exchange) if exchange.is_stream else (),
        framing=frozenset(finding.deviation.name for finding in exchange.framing_findings),
        texts={index: choice.text + choice.reasoning for index, choice in answer.choices.items()},
        finishes={index: tuple(choice.finish_reasons) for index, choice in answer.choices.items()},
        calls={index: _calls_of(choice) for index, choice in answer.choices.items() if choice.tool_calls},
        usage=_usage_of(answer),
        tokens={index: found for index, choice in answer.choices.items() if (found := _tokens_of(choice))},
        is_sampled=_is_sampled(exchange.request_json),
    )


def _error_of(error: Any) -> tuple[str | None, str | None, str | None] | None:
    """Type, code and param; a message's wording is free."""
    if error is None:
        return None
    return tuple(
        None if (part := at(error, name)) in (MISSING, None) else str(part) for name in ("type", "code", "param")
    )  # type: ignore[return-value]


_KEYED_BY_DATA = frozenset({"choices[].logprobs.top_logprobs[]", "admission.refusals"})
"""Maps whose names are what happened, not members: tokens of a completion, reasons why something was refused."""


def _shape_of(bodies: tuple[Any, ...]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for body in bodies:
        for path, kind in _walk(body, ""):
            found.setdefault(path, set()).add(kind)
    return {path: frozenset(kinds) for path, kinds in found.items()}


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if value is NOT_JSON:
        yield path, "not JSON"
    elif isinstance(value, dict):
        yield path, "object"
        for name, part in value.items():
            member = "*" if path in _KEYED_BY_DATA else name
            yield from _walk(part, f"{path}.{member}" if path else member)
    elif isinstance(value, list):
        yield path, "array"
        for part in value:
            yield from _walk(part, f"{path}[]")
    elif value is None:
        yield path, "null"
    elif isinstance(value, bool):
        yield path, "boolean"
    elif isinstance(value, int | float):
        yield path, "number"
    else:
        yield path, "string"


_PARTS = (
    ("tool_calls", "call"),
    ("function_call", "call"),
    ("reasoning_content", "reasoning"),
    ("reasoning", "reasoning"),
)


def _kind_of(chunk: Any) -> str:
    """One word for what a chunk is there for."""
    if at(chunk, "error"):
        return "error"
    choices = at(chunk, "choices")
    if not isinstance(choices, list):
        return "other"
    if not choices:
        return "usage" if at(chunk, "usage") else "empty"
    choice = choices[0]
    if at(choice, "finish_reason"):
        return "finish with text" if at(choice, "delta", "content") or at(choice, "text") else "finish"
    for name, kind in _PARTS:
        if at(choice, "delta", name):
            return kind
    if at(choice, "delta", "content") or at(choice, "text"):
        return "opening with text" if at(choice, "delta", "role") and at(choice, "delta", "content") else "text"
    return "opening" if at(choice, "delta", "role") else "empty"


def _grammar_of(exchange: Exchange) -> tuple[str, ...]:
    kinds: list[str] = []
    for kind in [*map(_kind_of, exchange.chunks), *(["done"] if exchange.is_done else [])]:
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    return tuple(kinds)


def _calls_of(choice: Choice) -> tuple[tuple[str, Any], ...]:
    """Name and arguments of each call, the arguments as JSON where they are."""
    found = []
    for call in choice.tool_calls.values():
        arguments = read_json(call.arguments.encode("utf-8", "surrogatepass"))
        found.append((call.name, call.arguments if arguments is NOT_JSON else arguments))
    return tuple(found)


def _usage_of(answer: Answer) -> Mapping[str, int]:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {name: value for name in names if isinstance(value := at(answer.usage, name), int)}


def _tokens_of(choice: Choice) -> tuple[TokenFact, ...]:
    found = [_token_of(entry) for entry in choice.logprobs]
    for part in choice.completion_logprobs:
        tokens, values = at(part, "tokens"), at(part, "token_logprobs")
        tops = at(part, "top_logprobs")
        for position, token in enumerate(tokens):
            top = at(tops, position)
            others = [v for name, v in top.items() if name != token] if isinstance(top, dict) else []
            found.append(TokenFact(str(token), _number(at(values, position)), _best(others)))
    return tuple(found)


def _token_of(entry: Any) -> TokenFact:
    token = str(at(entry, "token"))
    tops = at(entry, "top_logprobs")
    others = [at(top, "logprob") for top in tops if at(top, "token") != token] if isinstance(tops, list) else []
    return TokenFact(token, _number(at(entry, "logprob")), _best(others))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _best(values: list[Any]) -> float | None:
    return max((number for value in values if (number := _number(value)) is not None), default=None)


def _is_sampled(body: Any) -> bool:
    """Whether the request asks for chance: a temperature other than 0, or none given."""
    return isinstance(body, dict) and at(body, "temperature") != 0
