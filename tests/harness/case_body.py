"""The bodies of the `request` cases: placeholders to bytes. The notation is described in `data/cases/README.md`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

BRACKETS = {"[": "]", "{": "}", '{"a":': "}"}


@dataclass(frozen=True, slots=True)
class CaseWords:
    """What the placeholders stand for. `tokens_of` encodes a text with the served tokenizer."""

    model: str
    num_words_over_context: int
    tokens_of: Callable[[str], list[int]]


def case_body(given: Mapping[str, Any], words: CaseWords) -> bytes | None:
    """Returns the bytes of a case's body; None when it has none."""
    if "raw_hex" in given:
        return bytes.fromhex(given["raw_hex"])
    if "raw" in given:
        return str(given["raw"]).replace("$MODEL", words.model).encode()
    if "body" not in given:
        return None
    text = json.dumps(expand(given["body"], words), ensure_ascii=False)
    for mark, raw in _raw_parts(given["body"]).items():
        text = text.replace(json.dumps(mark), raw)
    return text.encode()


def expand(value: Any, words: CaseWords) -> Any:
    """Returns `value` with every placeholder replaced; `$nest_raw`, which may be no JSON, by a mark."""
    if isinstance(value, str):
        if value == "$OVER_CONTEXT":
            return words.num_words_over_context
        return value.replace("$MODEL", words.model).replace("$EMB_MODEL", words.model)
    if isinstance(value, list):
        return [expand(item, words) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (name := next(iter(value))) in PLACEHOLDERS:
        return PLACEHOLDERS[name](value[name], words)
    return {key: expand(item, words) for key, item in value.items()}


def nested(opening: str, count: int) -> str:
    """Returns `count` openings and as many closings."""
    return opening * count + BRACKETS[opening] * count


def _repeat(argument: Any, words: CaseWords) -> str:
    text, count = expand(argument, words)
    return str(text) * int(count)


def _list_repeat(argument: Any, words: CaseWords) -> list[Any]:
    item, count = argument
    return [expand(item, words)] * int(expand(count, words))


def _concat(argument: Any, words: CaseWords) -> str:
    return "".join(expand(part, words) for part in argument)


def _nest(argument: Any, _words: CaseWords) -> str:
    return nested(*argument)


def _nest_raw(argument: Any, _words: CaseWords) -> str:
    return _mark(argument)


def _tokens_of(argument: Any, words: CaseWords) -> list[int]:
    return words.tokens_of(argument)


PLACEHOLDERS: dict[str, Callable[[Any, CaseWords], Any]] = {
    "$repeat": _repeat,
    "$list_repeat": _list_repeat,
    "$concat": _concat,
    "$nest": _nest,
    "$nest_raw": _nest_raw,
    "$tokens_of": _tokens_of,
}


def _mark(argument: Any) -> str:
    return f"$nest_raw {json.dumps(argument)}"


def _raw_parts(value: Any) -> dict[str, str]:
    """Returns what each mark of `$nest_raw` stands for: text that goes into the body as it is."""
    if isinstance(value, dict):
        if set(value) == {"$nest_raw"}:
            return {_mark(value["$nest_raw"]): nested(*value["$nest_raw"])}
        return {mark: raw for item in value.values() for mark, raw in _raw_parts(item).items()}
    if isinstance(value, list):
        return {mark: raw for item in value for mark, raw in _raw_parts(item).items()}
    return {}
