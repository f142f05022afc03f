"""Every family's calls, written by hand: taken where they are right, at several vocabularies, and refused elsewhere."""

import json
from typing import Any

import pytest

from harness.forced_texts import DAY, PORT, TWO_CALLS
from harness.parsed_output import parser_of, read_output
from harness.tool_walk import WalkVocabulary, byte_vocabulary, marked_vocabulary, model_vocabulary
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_format import BraceCalls, PythonCalls, TagCalls
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

NAMES = sorted(FAMILIES)
TIDE = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "day": {"type": "integer"}},
    "required": ["port"],
    "additionalProperties": False,
}
PING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
BRIEF_VOCABULARIES = ("bytes", "marked")


def vocabulary_named(kind: str, name: str) -> WalkVocabulary:
    match kind:
        case "bytes":
            return byte_vocabulary()
        case "marked":
            return marked_vocabulary(FAMILIES[name])
    return model_vocabulary()


def compiled(name: str, kind: str, tide: Any = TIDE, **choice: bool) -> Any:
    vocabulary = vocabulary_named(kind, name)
    tools = [
        GrammarTool("tide_at", json.dumps(tide).encode(), is_strict=True, place="tools[0].function.parameters"),
        GrammarTool("ping", json.dumps(PING).encode(), is_strict=True, place="tools[1].function.parameters"),
        GrammarTool("tide", None, is_strict=True),
    ]
    form = FAMILIES[name]
    spec = tool_grammar(form, tools, vocabulary.tokens, **({"is_required": True, "allows_many": True} | choice))
    assert spec is not None
    grammar = vocabulary.compiler.compile(spec)
    assert not isinstance(grammar, GrammarRefusal), grammar
    return vocabulary, grammar


@pytest.mark.parametrize("kind", ["bytes", "marked", "model"])
@pytest.mark.parametrize("name", NAMES)
def test_one_call_and_two_are_taken_token_by_token(name: str, kind: str) -> None:
    output = read_output(parser_of(name), [TWO_CALLS[name]])
    assert output.calls == [("tide_at", {"port": PORT, "day": DAY}), ("ping", {})]
    vocabulary, grammar = compiled(name, kind)
    assert vocabulary.accepts(grammar, FAMILIES[name].example)
    assert vocabulary.accepts(grammar, TWO_CALLS[name])


@pytest.mark.parametrize("kind", BRIEF_VOCABULARIES)
@pytest.mark.parametrize("name", NAMES)
def test_without_parallel_calls_one_is_taken_and_two_are_not(name: str, kind: str) -> None:
    for is_required in (True, False):
        vocabulary, grammar = compiled(name, kind, is_required=is_required, allows_many=False)
        assert vocabulary.accepts(grammar, FAMILIES[name].example)
        assert not vocabulary.accepts(grammar, TWO_CALLS[name])


@pytest.mark.parametrize("kind", BRIEF_VOCABULARIES)
@pytest.mark.parametrize("name", NAMES)
def test_a_required_call_has_no_text_before_or_behind_it(name: str, kind: str) -> None:
    vocabulary, grammar = compiled(name, kind)
    example = FAMILIES[name].example
    assert not vocabulary.accepts(grammar, f"Sure. {example}")
    assert not vocabulary.accepts(grammar, f"{example} Done.")
    assert not vocabulary.accepts(grammar, "Sure.")
    assert not vocabulary.accepts(grammar, "")


@pytest.mark.parametrize("kind", BRIEF_VOCABULARIES)
@pytest.mark.parametrize("name", NAMES)
def test_otherwise_text_is_free_and_calls_are_not(name: str, kind: str) -> None:
    vocabulary, grammar = compiled(name, kind, is_required=False)
    example = FAMILIES[name].example
    wrong = example.replace("tide_at", "nope")
    if name == "harmony":
        before = "<|channel|>commentary<|message|>Sure.<|end|><|start|>assistant"
        answer = "<|channel|>final<|message|>A < b, é."
    else:
        is_bare = example.startswith(tuple(FAMILIES[name].bare_starts or "\0"))
        before, answer = "" if is_bare else "Sure, é: a < b. ", "Sure, é: a < b."
    assert vocabulary.accepts(grammar, before + TWO_CALLS[name])
    assert vocabulary.accepts(grammar, answer)
    assert not vocabulary.accepts(grammar, before + wrong)
    assert not vocabulary.accepts(grammar, before + example[: example.index("Brest")])


CORRUPTED: list[tuple[str, Any, str, str]] = [
    ("another name", TIDE, "tide_at", "tide_ax"),
    ("a name cut short", TIDE, "tide_at", "tide_a"),
    (
        "a missing member",
        {**TIDE, "properties": {**TIDE["properties"], "x": {}}, "required": ["x"]},
        "tide_at",
        "tide_at",
    ),
    ("a key of nobody", TIDE, "port", "harbour"),
    ("a key too many", {**TIDE, "properties": {"port": {"type": "string"}}}, "tide_at", "tide_at"),
    ("another constant", {**TIDE, "properties": {**TIDE["properties"], "port": {"enum": ["x"]}}}, "tide", "tide"),
    ("a string too long", {**TIDE, "properties": {"port": {"type": "string", "maxLength": 5}}}, "tide", "tide"),
]  # type: ignore[dict-item]


@pytest.mark.parametrize(("schema", "old", "new"), [row[1:] for row in CORRUPTED], ids=[row[0] for row in CORRUPTED])
@pytest.mark.parametrize("name", NAMES)
def test_a_corrupted_call_is_not_taken(name: str, schema: Any, old: str, new: str) -> None:
    vocabulary, grammar = compiled(name, "bytes", schema)
    assert not vocabulary.accepts(grammar, TWO_CALLS[name].replace(old, new))


@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_another_type_is_not_taken(name: str) -> None:
    style = FAMILIES[name].style
    wrong = "thirty" if isinstance(style, TagCalls) else f'"{DAY}"'
    if isinstance(style, BraceCalls):
        wrong = f"{style.quote}{DAY}{style.quote}"
    vocabulary, grammar = compiled(name, "bytes")
    text = TWO_CALLS[name]
    assert not vocabulary.accepts(grammar, text.replace(str(DAY), wrong))
    assert vocabulary.accepts(grammar, text.replace(str(DAY), "-7"))
    if isinstance(style, PythonCalls):
        assert not vocabulary.accepts(grammar, text.replace(str(DAY), "True"))


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_is_not_strict_takes_any_object(name: str) -> None:
    vocabulary = byte_vocabulary()
    tools = [GrammarTool("tide_at", json.dumps(TIDE).encode()), GrammarTool("ping")]
    assert tool_grammar(FAMILIES[name], tools, vocabulary.tokens, is_required=False, allows_many=True) is None
    spec = tool_grammar(FAMILIES[name], tools, vocabulary.tokens, is_required=False, allows_many=False)
    assert spec is not None
    grammar = vocabulary.compiler.compile(spec)
    example = FAMILIES[name].example
    assert vocabulary.accepts(grammar, example)  # type: ignore[arg-type]
    assert vocabulary.accepts(grammar, example.replace("port", "harbour"))  # type: ignore[arg-type]
    assert not vocabulary.accepts(grammar, example.replace("tide_at", "nope"))  # type: ignore[arg-type]


def test_nothing_is_forced_without_tools() -> None:
    tokens = byte_vocabulary().tokens
    assert tool_grammar(FAMILIES["hermes"], [], tokens, is_required=False, allows_many=False) is None
