"""What breaks structured output: a constraint that is not enforced, or enforced in part."""

import json
from collections.abc import Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsRequest, EditsValue, Heard, Ignores, Mutant, Said
from mutants.answers import (
    NAMES_NOTHING,
    ONE_CODE,
    REFUSES_INSIDE,
    edits_choice,
    edits_message,
    ends_with,
    says_of_errors,
)
from tidegate.conformance.catalog.schemas import ROWS

_PROSE = "Cats have four legs, and most of them are grey."
_BODY = b'{"error": {"message": "Bad request.", "type": "invalid_request_error", "param": null, "code": null}}'

WRONG = {
    "types": '{"on": "true", "n": 3, "at": null}',
    "enum": '{"colour": "purple"}',
    "const": '{"version": "v0.8"}',
    "required": '{"first": 1, "second": 2}',
    "closed": '{"n": 4, "note": "four"}',
    "integer": '{"n": 3.14}',
    "minimum": '{"n": 1}',
    "exclusive": '{"n": 7}',
    "multiple": '{"n": 13}',
    "min_items": '{"c": ["red"]}',
    "max_items": '{"c": ["red", "green", "red"]}',
    "nested": '{"rows": [[{"n": "1"}]]}',
    "pattern": '{"code": "BF-2045"}',
    "date": '{"day": "2027-02-30"}',
    "date_time": '{"at": "2027-05-01 12:30"}',
    "uuid": '{"id": "0b5a7c1e"}',
    "ipv4": '{"host": "192.0.2.700"}',
    "any_of": '{"v": "yes"}',
    "nullable": '{"v": "null"}',
    "ref": '{"a": {"x": 1, "y": 2}, "b": {"x": 3}}',
    "recursion": '{"n": 1, "next": {"n": 2}}',
    "unicode_names": '{"groesse": 3, "farbe": "blau"}',
    "escaped_names": '{"a b": 3, "c/d": 4}',
    "min_length": '{"t": "short"}',
    "max_length": '{"t": "a long one"}',
    "one_of": '{"n": 20}',
    "all_of": '{"n": 3}',
    "not": '{"n": 5}',
    "prefix_items": '{"p": [true, 3]}',
    "unique": '{"c": ["red", "red"]}',
    "pattern_properties": '{"x_1": 3, "word": 4}',
    "map": '{"a": 3, "b": "four"}',
    "dependent": '{"card": 3}',
    "if_then": '{"open": true}',
    "root_list": '{"list": [1, 2]}',
    "root_word": '"perhaps"',
}
"""For each schema a text that breaks it, as a server writes that does not enforce its keyword."""


def says(text: str, about: str) -> EditsValue:
    """A mutant whose whole answers are this text."""
    return edits_choice(about, lambda choice: choice.update({"text": text} if "text" in choice else _message(text)))


def _message(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text, "refusal": None}}


class Streams(Mutant):
    """Streams another text than the server behind."""

    def __init__(self, text: str, about: str) -> None:
        self._text = text
        self.says = about

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                delta["content"] = "" if heard.notes.get("is_said") else self._text
                heard.notes["is_said"] = True
        yield chunk


class _LosesLast(Mutant):
    says = "loses the last character of every delta"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for choice in chunk["choices"]:
            if choice["delta"].get("content"):
                choice["delta"]["content"] = choice["delta"]["content"][:-1]
        yield chunk


def _loosen_second(value: Any) -> Any:
    value["choices"][1]["message"]["content"] = _PROSE
    return value


def _close_by_force(choice: dict[str, Any]) -> None:
    choice["message"]["content"] += '"} or so'


def _forget_kinds(value: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if not name.startswith(("guided", "structured", "response_f"))}


IGNORES_FORMATS = EditsRequest("ignores response_format and its kin", _forget_kinds)
_HINTS = says(_PROSE, "takes a schema for a hint")
_FENCED = says('```json\n{"name": "Tom"}\n```', "writes JSON in a fence of Markdown")
_REFUSED = (
    "type",
    "word",
    "no_type",
    "no_schema_object",
    "no_name",
    "name",
    "schema_list",
    "schema_type",
    "schema_members",
)
_EXACT = ("type", "members", "dangling", "endless", "unsatisfiable", "look_around", "dynamic", "remote", "list")
_EXTENSION = ("two", "none", "both", "regex", "lark", "choice", "tag")
_OLD = ("json", "regex", "choice", "grammar")

MUTANTS: Mutants = {
    "structured.json_object": (_HINTS, _FENCED, says("[1, 2]", "takes a list for an object")),
    "structured.streamed_json_object": (Streams(_PROSE, "streams prose under json_object"),),
    **{f"structured.schema_{row.name}": (says(WRONG[row.name], f"does not enforce {row.what}"),) for row in ROWS},
    **{
        f"structured.streamed_{name}": (Streams(WRONG[name], f"does not enforce {name} in streams"),)
        for name in ("enum", "nested", "pattern", "unicode_names", "max_items")
    },
    "structured.strict_false": (_HINTS,),
    "structured.strict_null": (_HINTS,),
    "structured.finish_stop": (
        ends_with("says length after whole JSON", "length"),
        edits_message("goes on after the value", lambda m: m.update(content=m["content"] + "\nThat is it.")),
    ),
    "structured.cut_is_beginning": (
        ends_with("says stop after a cut", "stop"),
        edits_choice("closes a cut value by force", _close_by_force),
    ),
    "structured.streamed_equals_whole": (_LosesLast(),),
    "structured.every_choice": (EditsValue("constrains the first choice only", _loosen_second),),
    "structured.hot": (says(WRONG["types"], "constrains while the model is sure only"),),
    "structured.text_format": (
        Answers(
            "knows no format `text`",
            lambda heard: Said(400, _BODY) if heard.json["response_format"] == {"type": "text"} else None,
        ),
    ),
    **{f"structured.refuses_{name}": (IGNORES_FORMATS,) for name in _REFUSED},
    "structured.refuses_before_streaming": (REFUSES_INSIDE,),
    **{f"structured.exact_{name}": (NAMES_NOTHING, ONE_CODE, IGNORES_FORMATS) for name in _EXACT},
    **{f"structured.exact_{name}": (says_of_errors("names no limit", limit=None),) for name in ("depth", "bytes")},
    **{f"structured.exact_extension_{name}": (NAMES_NOTHING, IGNORES_FORMATS) for name in _EXTENSION},
    **{
        f"structured.exact_guided_{name}": (
            Ignores((f"guided_{name}",)),
            says_of_errors("does not say what to use instead", message="Unknown field."),
        )
        for name in _OLD
    },
    "structured.text_regex": (says("BF-20", "ends a pattern early"),),
    "structured.text_choice": (says("blue", "answers the beginning of a choice"),),
    "structured.text_grammar": (says("12", "ends a sentence of a grammar early"),),
    "structured.text_json": (says(WRONG["enum"], "does not enforce structured_outputs.json"),),
    "structured.text_json_text": (says(WRONG["enum"], "does not read a schema as text"),),
    "structured.text_tag": (says("So it is <n>70</n>.", "does not enforce what stands in a tag"),),
    "structured.streamed_text_regex": (Streams("BF-2045", "does not enforce a pattern in streams"),),
    "structured.streamed_text_choice": (Streams("greenish", "goes on after a choice"),),
    "structured.streamed_text_grammar": (Streams("12 + x", "does not enforce a grammar in streams"),),
    "structured.completed_text_regex": (says(" BF-204", "begins a completion with a blank"),),
    "structured.completed_text_choice": (says(json.dumps("green"), "quotes a choice"),),
}
