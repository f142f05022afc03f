"""Constraints as text: what a remote engine's llguidance is given is what ours compiles."""

import llguidance
import pytest
from llguidance.gbnf_to_lark import any_to_lark

from tidegate.backends.simulated import SimulatedBackend
from tidegate.engines.remote.remote_grammar import MAX_KEPT, GrammarWriter
from tidegate.errors import UnsupportedParameter
from tidegate.grammar.lark.llguidance_tokenizer import make_tokenizer
from tidegate.inference.grammar_parts import CompositeSpec, JsonPart, RulePart, SeriesPart, TextPart, TokenPart
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarRule,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)

TOKENIZER = make_tokenizer(SimulatedBackend().token_table())
SCHEMA = b'{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}'


def make_writer() -> GrammarWriter:
    return GrammarWriter(frozenset({256}), lambda token_id: bytes([token_id]))


SPECS: dict[str, tuple[GrammarSpec, bytes]] = {
    "object": (JsonObjectSpec(), b'{"x":1}'),
    "schema": (JsonSchemaSpec(SCHEMA), b'{"a":7}'),
    "regex": (RegexSpec("[a-c]{2,4}x?"), b"abx"),
    "choice": (ChoiceSpec(("yes", 'no "q" \n')), b'no "q" \n'),
    "lark": (LarkSpec('start: "a" b+\nb: /[0-9]+/ ","'), b"a1,22,"),
    "tags": (StructuralTagSpec((StructuralTag("<f>", b'{"type":"integer"}', "</f>"),), ("<f",)), b"so <f>5</f>"),
    "parts": (CompositeSpec(SeriesPart((TextPart("x"), JsonPart(b'{"enum":[1,2]}')))), b"x2"),
    "parts with rules": (CompositeSpec(RulePart("r"), (("r", TextPart("deep")),)), b"deep"),
}


@pytest.mark.parametrize("name", SPECS)
def test_both_ways_into_llguidance_read_the_text_as_it_is(name: str) -> None:
    text = make_writer().text(GrammarRule(SPECS[name][0]))
    assert any_to_lark(text) == text


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("after", [(), ((256,),), ((60, 47), (256,))], ids=["at once", "behind a token", "behind text"])
def test_what_the_constraint_allows_is_allowed_there(name: str, after: tuple[tuple[int, ...], ...]) -> None:
    spec, sample = SPECS[name]
    text = llguidance.grammar_from("grammar", make_writer().text(GrammarRule(spec, after)))
    machine = llguidance.LLMatcher(TOKENIZER, text, log_level=0)
    before = [*b"why not", *after[0]] if after else []
    assert machine.validate_tokens([*before, *sample]) == len(before) + len(sample), machine.get_error()
    assert machine.consume_tokens([*before, *sample])
    assert machine.is_accepting()


def test_what_the_constraint_forbids_is_forbidden_there_behind_reasoning_as_well() -> None:
    for after, before in (((), b""), (((256,),), [*b"hm", 256])):
        text = make_writer().text(GrammarRule(JsonSchemaSpec(SCHEMA), after))  # type: ignore[arg-type]
        machine = llguidance.LLMatcher(TOKENIZER, llguidance.grammar_from("ebnf", text), log_level=0)
        ids = [*before, *b'{"b"']
        assert machine.validate_tokens(ids) == len(before) + 2


def test_reasoning_that_ends_in_parts_of_both_kinds_is_refused() -> None:
    with pytest.raises(UnsupportedParameter, match="not behind this model's reasoning"):
        make_writer().text(GrammarRule(JsonObjectSpec(), ((60, 256),)))


def test_a_token_of_control_is_written_by_its_id() -> None:
    spec = CompositeSpec(SeriesPart((TextPart("x"), TokenPart(256))))
    assert "256" in make_writer().text(GrammarRule(spec))


def test_texts_are_kept_up_to_a_bound_and_the_last_used_longest() -> None:
    writer = make_writer()
    rules = [GrammarRule(RegexSpec(f"a{{{i + 1}}}")) for i in range(MAX_KEPT + 1)]
    texts = [writer.text(rule) for rule in rules]
    assert writer.num_kept == MAX_KEPT
    assert [writer.text(rule) for rule in rules] == texts
