"""How many lengths one place counts: too many beside each other are refused, wherever alternatives come from."""

import json
from typing import Any

import pytest

from harness.schema_judge import byte_compiler
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.grammar.schema.counted_lengths import MAX_COUNTED_LENGTHS, MOST_FOLLOWED, pattern_lengths
from tidegate.inference.grammar_spec import (
    GrammarSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)

COMPILER, _ = byte_compiler()
STRINGS: list[Any] = [{"type": "string", "minLength": 3000 - i, "maxLength": 3000 + i} for i in range(10)]
REPEATED = [f"{letter}{{3000,4000}}" for letter in "abcdefgh"]


def member(schema: Any) -> Any:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def circle(schema: Any) -> Any:
    return {"type": "array", "items": {"anyOf": [schema, {"$ref": "#/$defs/value"}]}}


TOO_MANY: dict[str, Any] = {
    "strings": {"anyOf": STRINGS},
    "members of one name": {"anyOf": [member(schema) for schema in STRINGS]},
    "items": {"anyOf": [{"type": "array", "items": schema} for schema in STRINGS]},
    "patterns": {"anyOf": [{"type": "string", "pattern": f"^{text}$"} for text in REPEATED]},
    "names of members": {"patternProperties": {f"^{text}$": {} for text in REPEATED}, "additionalProperties": False},
    "references": {"anyOf": [{"$ref": f"#/$defs/{i}"} for i in range(10)], "$defs": dict(enumerate(STRINGS))},
    "references in a circle": {
        "$ref": "#/$defs/value",
        "$defs": {"value": {"anyOf": [circle(schema) for schema in STRINGS]}},
    },
    "intersections": {
        "allOf": [
            {"anyOf": [{"type": "string", "maxLength": 100 + i} for i in range(20)]},
            {"anyOf": [{"type": "string", "minLength": 10 + i} for i in range(20)]},
        ]
    },
}
FEW: dict[str, Any] = {
    "one, however large": {"type": "string", "minLength": 1_000_000, "maxLength": 2_000_000},
    "three large ones": {"anyOf": [{"type": "string", "maxLength": 100_000 + i} for i in range(3)]},
    "many members, each in its place": {"properties": {f"p{i}": schema for i, schema in enumerate(STRINGS)}},
    "the same length in many alternatives": {"anyOf": [{**member(STRINGS[0]), "title": f"t{i}"} for i in range(50)]},
    "strings beside constants": {"anyOf": [STRINGS[0], {"enum": [f"c{i}" for i in range(100)]}, {"type": "number"}]},
    "lengths of lists": {
        "anyOf": [{"type": "array", "items": {}, "minItems": 900, "maxItems": 990 + i} for i in range(30)]
    },
    "a recursive type": {
        "$ref": "#/$defs/value",
        "$defs": {"value": {"anyOf": [STRINGS[0], *(member({"$ref": "#/$defs/value"}) for _ in range(20))]}},
    },
}


def compiled(schema: Any) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


def assert_too_many(found: Any) -> None:
    assert isinstance(found, GrammarRefusal)
    assert found.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
    assert found.limit is not None
    assert (found.limit.name, found.limit.value) == ("schema_lengths", MAX_COUNTED_LENGTHS)
    assert found.limit.actual > MAX_COUNTED_LENGTHS


@pytest.mark.parametrize("name", TOO_MANY)
def test_too_many_lengths_beside_each_other_are_refused(name: str) -> None:
    assert_too_many(compiled(TOO_MANY[name]))


@pytest.mark.parametrize("name", FEW)
def test_few_lengths_in_one_place_compile(name: str) -> None:
    assert not isinstance(compiled(FEW[name]), GrammarRefusal)


def test_the_bound_is_the_sum_and_each_length_counts_so_far_only() -> None:
    def alternatives(most: int) -> Any:
        lengths = [MOST_FOLLOWED + 7, MOST_FOLLOWED + 8, MOST_FOLLOWED + 9, most]
        return {"anyOf": [{"type": "string", "maxLength": length} for length in lengths]}

    left = MAX_COUNTED_LENGTHS - 3 * MOST_FOLLOWED
    assert not isinstance(compiled(alternatives(left)), GrammarRefusal)
    assert_too_many(compiled(alternatives(left + 1)))


BESIDE: list[GrammarSpec] = [
    RegexSpec("|".join(REPEATED)),
    LarkSpec("start: " + " | ".join(f"/{text}/" for text in REPEATED)),
    StructuralTagSpec(tuple(StructuralTag("<a>", json.dumps(schema).encode(), "</a>") for schema in STRINGS), ("<a>",)),
]


@pytest.mark.parametrize("spec", BESIDE, ids=lambda spec: type(spec).__name__)
def test_other_kinds_of_grammars_are_held_to_the_same_bound(spec: GrammarSpec) -> None:
    assert_too_many(COMPILER.compile(spec))


def test_tags_that_begin_differently_are_read_in_places_of_their_own() -> None:
    tags = [StructuralTag(f"<a{i}>", json.dumps(schema).encode(), "</a>") for i, schema in enumerate(STRINGS)]
    assert not isinstance(COMPILER.compile(StructuralTagSpec(tuple(tags), ("<a",))), GrammarRefusal)


@pytest.mark.parametrize(
    ("pattern", "counted"),
    [
        ("", 0),
        ("a{3}", 3),
        ("(a{3,7}b{2,})?", 9),
        ("[{5}]x\\{5}", 0),
        ("\\x{52}\\p{Lu}\\u{61}{4}", 4),
        (".{0,1000000}", MOST_FOLLOWED),
    ],
)
def test_repetitions_of_a_pattern_count_as_they_are_written(pattern: str, counted: int) -> None:
    assert pattern_lengths(pattern) == counted
