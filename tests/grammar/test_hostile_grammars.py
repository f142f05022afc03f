"""Grammars that were written to hurt: refused, or compiled within their bounds; nothing raises, nothing is weaker."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.schema_judge import EOS, accepts_text, byte_compiler
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, MAX_WHITESPACE, write_json
from tidegate.grammar.lark.lark_bounds import MAX_LARK_DEPTH, MAX_LARK_RULES
from tidegate.grammar.matcher import MaskRow
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.grammar.schema.lowered_bounds import MAX_MULTIPLE, MAX_PROPERTIES, MAX_RULE_DEPTH
from tidegate.grammar.schema.lowering import MAX_COMBINATIONS
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarSpec, JsonObjectSpec, JsonSchemaSpec, LarkSpec, RegexSpec

DATA = Path(__file__).parents[1] / "data"
COMPILER, WORDS = byte_compiler()

EXPLODING = ["(a+)+b", "(x?){5000}x{5000}", "(.{0,999}){9}", "a{1000000}", "(a{1000}){1000}", "((a{99}){99}){99}"]


def compile_schema(schema: Any) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


@pytest.mark.parametrize("pattern", EXPLODING)
def test_a_pattern_that_explodes_is_refused_or_works_within_its_limits(pattern: str) -> None:
    specs: list[GrammarSpec] = [
        RegexSpec(pattern),
        LarkSpec(f"start: /{pattern}/"),
        JsonSchemaSpec(json.dumps({"pattern": f"^{pattern}$"}).encode()),
    ]
    for spec in specs:
        grammar = COMPILER.compile(spec)
        if isinstance(grammar, GrammarRefusal):
            continue
        machine = grammar.make_matcher()
        COMPILER.fill([MaskRow(machine, 0)])
        for byte in b'"axaxaxaaaab"':
            if machine.legal_prefix([byte]):
                machine.accept([byte])
            COMPILER.fill([MaskRow(machine, 0)])


@pytest.mark.parametrize("depth", [MAX_SCHEMA_DEPTH + 1, 129, 10_000, 1_000_000])
@pytest.mark.parametrize("opening", ['{"not":', '{"items":', "[", '{"properties":{"a":'])
def test_deep_schemas_are_refused_by_their_limit(opening: str, depth: int) -> None:
    text = (opening * depth).encode()
    refusal = COMPILER.compile(JsonSchemaSpec(text))
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
    assert refusal.limit is not None
    assert refusal.limit.name == ("schema_bytes" if len(text) > MAX_SCHEMA_BYTES else "schema_depth")


def test_a_schema_at_the_bound_of_depth_compiles() -> None:
    text = '{"items":' * (MAX_SCHEMA_DEPTH - 1) + "{}" + "}" * (MAX_SCHEMA_DEPTH - 1)
    assert not isinstance(COMPILER.compile(JsonSchemaSpec(text.encode())), GrammarRefusal)


def test_brackets_inside_strings_are_no_depth() -> None:
    assert not isinstance(compile_schema({"description": "[" * 500 + '\\"' + "{" * 500}), GrammarRefusal)


def test_a_schema_with_too_many_parts_is_refused() -> None:
    schema = {"anyOf": [{"type": "null"}] * (MAX_SCHEMA_NODES + 1)}
    text = json.dumps(schema).replace(" ", "").replace('{"type":"null"}', "{}")
    refusal = COMPILER.compile(JsonSchemaSpec(text.encode()))
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_nodes", MAX_SCHEMA_NODES)


def test_too_many_combinations_are_refused() -> None:
    count = MAX_COMBINATIONS.bit_length()
    refusal = compile_schema({"dependentRequired": {f"k{i}": [f"r{i}"] for i in range(count)}})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_combinations", MAX_COMBINATIONS)


CIRCLES: list[Any] = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}},
    {"not": {"$ref": "#"}},
    {"if": {"$ref": "#"}, "then": {"type": "string"}},
    {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"unevaluatedProperties": False, "allOf": [{"$ref": "#"}]},
    {"dependentSchemas": {"a": {"$ref": "#"}}},
    {"not": {"anyOf": [{"$ref": "#/not"}, {"$ref": "#/not"}]}},
    {"not": {"properties": {"a": {"$ref": "#/not"}, "b": {"$ref": "#/not"}, "c": {"$ref": "#/not"}}}},
    {"oneOf": [{"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a", "b"]}] * 3},
]


@pytest.mark.parametrize("number", range(len(CIRCLES)))
def test_circles_of_references_end_in_a_refusal(number: int) -> None:
    assert isinstance(compile_schema(CIRCLES[number]), GrammarRefusal)


def test_a_long_chain_of_references_compiles() -> None:
    definitions: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(400)}
    definitions["d400"] = {"type": "null"}
    grammar = compile_schema({"$ref": "#/$defs/d0", "$defs": definitions})
    assert isinstance(grammar, GrammarRefusal) or accepts_text(grammar, "null")


def test_intersections_of_recursive_schemas_end() -> None:
    part = {"properties": {"x": {"$ref": "#/$defs/A"}, "y": {"$ref": "#/$defs/B"}}}
    turned = {"properties": {"x": {"$ref": "#/$defs/B"}, "y": {"$ref": "#/$defs/A"}}}
    compile_schema({"$defs": {"A": part, "B": turned}, "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]})


def test_broken_schemas_never_raise() -> None:
    groups = json.loads((DATA / "json-schema-test-suite/draft2020-12.json").read_text("utf-8")).values()
    schemas = [group["schema"] for file in groups for group in file]
    draw = random.Random(6)
    wrong: list[Any] = [None, 0, -1, 1.5, "x", [], {}, [None], {"a": None}, True, "#", "(", 10**400, "\ud800"]
    for schema in schemas:
        if isinstance(schema, dict) and schema:
            broken = {**schema, draw.choice(list(schema)): draw.choice(wrong)}
            COMPILER.compile(JsonSchemaSpec(json.dumps(broken).encode()))
            text = json.dumps(schema).encode()
            COMPILER.compile(JsonSchemaSpec(text[: draw.randrange(len(text))]))
    for text in (b"", b"\xff", b"NaN", b'{"minimum": Infinity}', b'{"minimum": 1e999}', b'"\\ud800"', b"1" * 5000):
        assert isinstance(COMPILER.compile(JsonSchemaSpec(text)), GrammarRefusal)
    assert isinstance(COMPILER.compile(ChoiceSpec(("\ud800",))), GrammarRefusal)
    assert isinstance(COMPILER.compile(RegexSpec("\ud800")), GrammarRefusal)
    assert isinstance(COMPILER.compile(LarkSpec("start: (" + "(" * 10_000)), GrammarRefusal)


def test_a_key_has_one_spelling_so_that_no_rule_for_it_is_escaped() -> None:
    grammar = compile_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert accepts_text(grammar, '{"a": 1, "b": "x"}')
    assert not accepts_text(grammar, '{"\\u0061": "x"}')
    assert not accepts_text(grammar, '{"b": 1, "a": "x"}')


def test_white_space_between_tokens_ends() -> None:
    grammar = COMPILER.compile(JsonObjectSpec())
    assert not isinstance(grammar, GrammarRefusal)
    assert accepts_text(grammar, "{" + "\n" * MAX_WHITESPACE + "}")
    assert not accepts_text(grammar, "{" + "\n" * (MAX_WHITESPACE + 1) + "}")
    assert not accepts_text(grammar, " {}")
    assert not accepts_text(grammar, "{} ")


def test_json_is_written_as_the_machines_accept_it() -> None:
    grammar = COMPILER.compile(JsonObjectSpec())
    assert not isinstance(grammar, GrammarRefusal)
    value = {"text": 'quote " backslash \\ line\nfeed \t é 日本 \U0001f600 /', "list": [1, -0.5, 1e30, None, True, {}]}
    assert (
        grammar.make_matcher().legal_prefix([*write_json(value).encode(), EOS]) == len(write_json(value).encode()) + 1
    )


CHAINS: dict[str, Any] = {
    "items": lambda after: {"items": after},
    "properties": lambda after: {"properties": {"a": after}},
    "unions": lambda after: {"anyOf": [{"type": "null"}, after]},
}


@pytest.mark.parametrize("kind", CHAINS)
def test_references_that_lead_too_deep_are_refused_before_they_end_the_process(kind: str) -> None:
    definitions = {f"d{i}": CHAINS[kind]({"$ref": f"#/$defs/d{i + 1}"}) for i in range(2000)}
    refusal = compile_schema({"$ref": "#/$defs/d0", "$defs": {**definitions, "d2000": {"type": "null"}}})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_rule_depth", MAX_RULE_DEPTH)


def test_rules_in_a_circle_count_together() -> None:
    around: dict[str, Any] = {f"d{i}": {"items": {"$ref": f"#/$defs/d{(i + 1) % 400}"}} for i in range(400)}
    refusal = compile_schema({"$ref": "#/$defs/d7", "$defs": around})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert refusal.limit.name == "schema_rule_depth"
    wide = {f"d{i}": {"items": {"type": "null"}} for i in range(400)}
    names = {f"k{i}": {"$ref": f"#/$defs/d{i}"} for i in range(400)}
    flat = {"properties": names, "required": list(names), "$defs": wide}
    assert not isinstance(compile_schema(flat), GrammarRefusal)


def test_long_chains_and_deep_brackets_of_lark_are_refused_before_they_end_the_process() -> None:
    chain = "start: r0\n" + "\n".join(f'r{i}: "a" r{i + 1} | "b"' for i in range(5000)) + '\nr5000: "c"'
    inside = json.dumps({"$defs": {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(3000)}})
    deep = "start: " + "(" * 3000 + '"a"' + ")?" * 3000
    found = [COMPILER.compile(LarkSpec(text)) for text in (chain, f"start: %json {inside}", deep)]
    assert [refusal.limit.name for refusal in found if isinstance(refusal, GrammarRefusal) and refusal.limit] == [
        "grammar_rules",
        "grammar_rules",
        "grammar_depth",
    ]
    quoted = COMPILER.compile(LarkSpec("start: " + " | ".join(f'"{"(" * 100}{i}:"' for i in range(50))))
    assert not isinstance(quoted, GrammarRefusal)
    assert MAX_LARK_RULES < 2400
    assert MAX_LARK_DEPTH < 3000


@pytest.mark.parametrize("multiples", [[1000003], [97, 89, 83, 79], [0.123456789]], ids=str)
def test_multiples_with_too_many_remainders_are_refused(multiples: list[float]) -> None:
    refusal = compile_schema({"type": "number", "allOf": [{"multipleOf": value} for value in multiples]})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_multiple", MAX_MULTIPLE)


def test_objects_of_too_many_properties_are_refused() -> None:
    refusal = compile_schema({"properties": {f"k{i}": {} for i in range(MAX_PROPERTIES + 1)}})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_properties", MAX_PROPERTIES)


def ten_times(rule: str) -> str:
    """Returns a grammar of ten rules alike, `s` being the rule itself: the parser's rows grow ten times as fast."""
    names = [f"s{number}" for number in range(10)]
    return "\n".join([f"start: {' | '.join(names)}", *(f"{name}: {rule.replace('s', name)}" for name in names)])


AMBIGUOUS = {
    "pairs": ten_times('s s | "a"'),
    "pairs and triples of anything or nothing": ten_times('s s s | s s | "a" | ""'),
    "sixty that may be absent": "start: x\nx: " + "y? " * 60 + '\ny: "a"',
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_grammar_that_reads_a_text_in_ever_more_ways_ends_in_an_error_and_not_in_a_hang(name: str) -> None:
    compiled = COMPILER.compile(LarkSpec(AMBIGUOUS[name]))
    assert not isinstance(compiled, GrammarRefusal)
    machine = compiled.make_matcher()
    for number in range(100):
        if number % 5 == 4:
            COMPILER.fill([MaskRow(machine, 0)])
        if not machine.accept([ord("a")]):
            break
    assert not machine.accept([ord("a")])
    assert machine.error is not None
    COMPILER.fill([MaskRow(machine, 0)])
    assert not WORDS[0].any()


@pytest.mark.parametrize("pattern", [r"^\cC$", r"^a\cC$"])
def test_a_schema_whose_values_are_never_written_is_refused_before_a_machine_stands_still(pattern: str) -> None:
    refusal = compile_schema({"type": "string", "pattern": pattern})
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.kind is RefusalKind.UNSUPPORTED_SCHEMA


def test_a_pattern_that_takes_too_much_work_for_one_mask_ends_in_an_error() -> None:
    grammar = COMPILER.compile(RegexSpec("(.{0,999}){9}"))
    assert not isinstance(grammar, GrammarRefusal)
    machine = grammar.make_matcher()
    for byte in b"hello " * 200:
        COMPILER.fill([MaskRow(machine, 0)])
        if not machine.accept([byte]):
            break
    assert machine.error is not None
    COMPILER.fill([MaskRow(machine, 0)])
    assert not WORDS[0].any()
