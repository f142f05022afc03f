"""Where a constraint begins: at once, behind reasoning, or either; walked through the machine that enforces it."""

import json
from typing import Any

import pytest

from harness.schema_judge import BYTES
from harness.tool_walk import WalkVocabulary
from tidegate.errors import InvalidSchema, UnsupportedSchema
from tidegate.grammar.matcher import TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_parts import CompositeSpec
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)
from tidegate.parsers.families import FAMILIES, THINK
from tidegate.parsers.reasoning_families import REASONING
from tidegate.parsers.tool_format import ChannelCalls, ReasoningMarkers
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar
from tidegate.serving.constraint import Constraint, at, in_schema
from tidegate.serving.prompt_state import PromptState, state_of
from tidegate.serving.reasoned_constraint import PlacedConstraint, place_answer, place_constraint
from tidegate.text.rendered_prompt import RenderedPrompt

CONTROLS = ("<think>", "</think>", "<|channel|>", "<|message|>", "<|end|>", "<|start|>")
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}).encode()
INSIDE, BEFORE, BEHIND = PromptState.INSIDE, PromptState.BEFORE, PromptState.BEHIND


def vocabulary(*, has_controls: bool) -> WalkVocabulary:
    first = len(BYTES.tokens)
    controls = {text: first + i for i, text in enumerate(CONTROLS)} if has_controls else {}
    tokens = [*BYTES.tokens, *(text.encode() for text in controls)]
    return WalkVocabulary(TokenTable(tokens, BYTES.special_ids | set(controls.values()), BYTES.eos_ids), controls)


MARKED, PLAIN = vocabulary(has_controls=True), vocabulary(has_controls=False)
TOOLS = tool_grammar(
    FAMILIES["hermes"], [GrammarTool("ping", b'{"type":"object"}')], PLAIN.tokens, is_required=True, allows_many=True
)
assert TOOLS is not None
TAGS = StructuralTagSpec((StructuralTag("<f>", SCHEMA, "</f>"),), ("<f>",))
KINDS: dict[str, tuple[GrammarSpec, str, str]] = {
    # A spec, a text that it allows, and one that it does not.
    "json_schema": (JsonSchemaSpec(SCHEMA), '{"a": 1}', '{"b": 1}'),
    "json_object": (JsonObjectSpec(), '{"b": [1]}', "[1]"),
    "regex": (RegexSpec("a+b"), "aab", "ba"),
    "choice": (ChoiceSpec(("yes", "no")), "no", "maybe"),
    "lark": (LarkSpec('start: "x" /[0-9]+/'), "x12", "12"),
    "tags": (TAGS, 'so <f>{"a": 1}</f> it is', "so <f>1</f>"),
    "tools": (TOOLS, '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>', "no call"),
}


def placed(spec: GrammarSpec, markers: ReasoningMarkers, state: PromptState, known: WalkVocabulary) -> PlacedConstraint:
    constraint = Constraint(spec, "response_format", at("response_format"))
    return place_constraint(constraint, markers, state, tokens=known.tokens, single_token=known.controls.get)


def takes(known: WalkVocabulary, spec: GrammarSpec, text: str) -> bool:
    grammar = known.compiler.compile(spec)
    assert not isinstance(grammar, GrammarRefusal), grammar
    return known.accepts(grammar, text)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("known", [MARKED, PLAIN], ids=["marked", "plain"])
def test_a_model_that_may_reason_by_itself_may_do_either(kind: str, known: WalkVocabulary) -> None:
    spec, good, bad = KINDS[kind]
    found = placed(spec, THINK, BEFORE, known)
    assert found.starts_after == ()
    for text in (good, f"<think>why {{\n</think>\n\n{good}", f"<think></think>{good}"):
        assert takes(known, found.constraint.spec, text), text
    unfinished = () if kind == "tags" else ("<think>why", f"<think>{good}", "<think>why</think>")
    for text in (bad, f"<think>why</think>\n{bad}", *unfinished):
        assert not takes(known, found.constraint.spec, text), text


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_behind_an_open_marker_of_several_tokens_the_text_is_free_up_to_its_end(kind: str) -> None:
    spec, good, bad = KINDS[kind]
    found = placed(spec, THINK, INSIDE, PLAIN)
    assert found.starts_after == ()
    assert takes(PLAIN, found.constraint.spec, f"why {{ </thin\n</think>\n\n{good}")
    assert not takes(PLAIN, found.constraint.spec, f"why</think>{bad}")
    assert not takes(PLAIN, found.constraint.spec, good)


def test_an_end_that_is_one_token_is_told_to_the_engine_as_its_id() -> None:
    spec = KINDS["json_schema"][0]
    found = placed(spec, THINK, INSIDE, MARKED)
    assert found.starts_after == ((MARKED.controls["</think>"],),)
    assert found.constraint.spec is spec


def test_of_several_ends_one_that_is_no_token_keeps_all_in_the_grammar() -> None:
    markers = ReasoningMarkers(("<think>",), ("</think>", "Here is my response:"))
    found = placed(KINDS["json_schema"][0], markers, INSIDE, MARKED)
    assert found.starts_after == ()
    for end in markers.closes:
        assert takes(MARKED, found.constraint.spec, f'why{end}{{"a": 1}}')


@pytest.mark.parametrize("markers", [THINK, None])
def test_behind_reasoning_or_without_it_nothing_changes(markers: ReasoningMarkers | None) -> None:
    constraint = Constraint(JsonObjectSpec(), "p", at("p"))
    state = BEHIND if markers is not None else BEFORE
    found = place_constraint(constraint, markers, state, tokens=MARKED.tokens, single_token=MARKED.controls.get)
    assert found == PlacedConstraint(constraint)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"tools"}))
def test_in_channels_the_answer_is_the_last_message(kind: str) -> None:
    spec, good, bad = KINDS[kind]
    style = FAMILIES["harmony"].style
    assert isinstance(style, ChannelCalls)
    found = place_answer(Constraint(spec, "p", at("p")), style, MARKED.tokens).spec
    said = "<|channel|>final<|message|>"
    thought = "<|channel|>analysis<|message|>why {<|end|><|start|>assistant"
    assert takes(MARKED, found, f"{said}{good}")
    assert takes(MARKED, found, f"{thought}{said}{good}")
    for text in (good, f"{said}{bad}", f"{thought}{said}{bad}", thought):
        assert not takes(MARKED, found, text), text


@pytest.mark.parametrize("state", [BEFORE, INSIDE])
def test_a_refusal_names_the_place_in_the_body_all_the_same(state: PromptState) -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"contentSchema": {}, "uniqueItems": True}}}).encode()
    place = "response_format.json_schema.schema"
    constraint = Constraint(JsonSchemaSpec(schema), place, in_schema(place, schema))
    direct = PLAIN.compiler.compile(constraint.spec)
    assert isinstance(direct, GrammarRefusal)
    found = place_constraint(constraint, THINK, state, tokens=PLAIN.tokens, single_token=PLAIN.controls.get).constraint
    assert isinstance(found.spec, CompositeSpec)
    refusal = PLAIN.compiler.compile(found.spec)
    assert isinstance(refusal, GrammarRefusal)
    assert found.error(refusal).param == constraint.error(direct).param == f"{place}.properties.a.uniqueItems"


def test_tags_that_do_not_fit_together_are_refused_with_their_place() -> None:
    with pytest.raises((InvalidSchema, UnsupportedSchema)):
        placed(StructuralTagSpec((StructuralTag("<f>", SCHEMA, "</f>"),), ("<g>",)), THINK, BEFORE, PLAIN)


STATES: list[tuple[str, Any, PromptState]] = [
    ("assistant\n", None, BEFORE),
    ("assistant\n<think>\n", None, INSIDE),
    ("assistant\n<think>", None, INSIDE),
    ("assistant\n<think>\n\n</think>\n\n", None, BEHIND),
    ("<think>a</think>b assistant\n", None, BEFORE),
    ("user <think> assistant\n", None, BEFORE),
    ("assistant\n<think>\nso far", "so far", INSIDE),
    ("assistant\n<think>\na\n</think>\n\nso far", "so far", BEHIND),
    ("assistant\nso far", "so far", BEHIND),
    ("assistant\n<think>so <think>far", "<think>so <think>far", INSIDE),
    ("x <think> " + "y" * 200 + " assistant\nso far", "so far", BEHIND),
]


@pytest.mark.parametrize(("text", "continued", "state"), STATES, ids=[str(i) for i in range(len(STATES))])
def test_the_prompts_own_end_says_where_it_stops(text: str, continued: str | None, state: PromptState) -> None:
    assert state_of(RenderedPrompt(text), THINK, continued=continued) is state


def test_a_marker_that_a_caller_spelled_is_none() -> None:
    text = "say <think>"
    assert state_of(RenderedPrompt(text, (len(text) - 6,)), THINK) is BEFORE
    assert state_of(RenderedPrompt(text, (len(text),)), THINK) is INSIDE


def test_phrases_at_the_end_of_a_prompt_count_without_their_line_break() -> None:
    markers = REASONING["apriel"]
    assert markers is not None
    assert state_of(RenderedPrompt("x\nHere are my reasoning steps:\n"), markers) is INSIDE


def test_a_format_of_an_operators_choice_holds_where_the_prompt_says_nothing() -> None:
    markers = REASONING["deepseek_r1"]
    assert markers is not None
    assert state_of(RenderedPrompt("assistant\n"), markers) is INSIDE
    assert state_of(RenderedPrompt("assistant\n<think></think>"), markers) is BEHIND
