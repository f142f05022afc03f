"""Grammars made of parts: how free text, markers, control tokens and fixed text go together, and their bounds."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from harness.schema_judge import BYTES
from tidegate.grammar.composite.composite_grammar import MAX_REPEATS
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES
from tidegate.grammar.llguidance.llguidance_compiler import LlguidanceCompiler
from tidegate.grammar.matcher import TokenTable
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    FreePart,
    FreeUntilPart,
    GrammarPart,
    JsonPart,
    LarkPart,
    Marker,
    PatternPart,
    RepeatPart,
    RulePart,
    SeriesPart,
    TextPart,
    TokenPart,
    Trigger,
)
from tidegate.inference.grammar_spec import GrammarRule, StructuralTag, StructuralTagSpec

EOS, OPEN, CLOSE = 256, 257, 258
TABLE = TokenTable([*BYTES.tokens, b"<o>", b"<c>"], frozenset((EOS, OPEN, CLOSE)), (EOS,))
COMPILER = LlguidanceCompiler(TABLE)
Text = Sequence[str | int]


def accepts(part: GrammarPart, text: Text, rules: tuple[tuple[str, GrammarPart], ...] = ()) -> bool:
    grammar = COMPILER.compile(CompositeSpec(part, rules))
    assert not isinstance(grammar, GrammarRefusal), grammar
    ids = [i for piece in text for i in ([piece] if isinstance(piece, int) else list(piece.encode()))]
    return grammar.make_matcher().legal_prefix([*ids, EOS]) == len(ids) + 1


def refusal_of(part: GrammarPart, rules: tuple[tuple[str, GrammarPart], ...] = ()) -> GrammarRefusal:
    refusal = COMPILER.compile(CompositeSpec(part, rules))
    assert isinstance(refusal, GrammarRefusal)
    return refusal


def words(*texts: str) -> AlternativesPart:
    return AlternativesPart(tuple(map(TextPart, texts)))


def series(*parts: GrammarPart) -> SeriesPart:
    return SeriesPart(parts)


INTEGER = JsonPart(b'{"type": "integer"}')
MARKED = FreeUntilPart((Trigger((Marker("<o>", OPEN),), INTEGER), Trigger((Marker("[o]"),), TextPart("x"))))
LOOP = AlternativesPart((
    FreePart((Marker("<o>", OPEN),)),
    FreeUntilPart((Trigger((Marker("<o>", OPEN),), series(INTEGER, TokenPart(CLOSE), RulePart("loop"))),)),
))  # fmt: skip

TAKEN: dict[str, tuple[GrammarPart, list[Text], list[Text]]] = {
    "a text that begins another": (
        series(words("tide", "tide_at", "t"), words("_at!", "!", "x")),
        [["tide_at!"], ["tide!"], ["tidex"], ["tide_at_at!"], ["t!"]],
        [["tide_at"], ["tid!"]],
    ),
    "an optional text that begins the next": (
        series(RepeatPart(TextPart("\n"), most=1), words("\n</f>", "<p>")),
        [["\n</f>"], ["\n\n</f>"], ["<p>"], ["\n<p>"]],
        [["</f>"], ["\n\n<p>"]],
    ),
    "a number, then text": (series(INTEGER, words(".", "0")), [["1."], ["-12."]], [["."], ["1.5"]]),
    "repetition": (
        RepeatPart(TextPart("ab"), TextPart(", "), least=1, most=3),
        [["ab"], ["ab, ab"], ["ab, ab, ab"]],
        [[""], ["ab, "], ["abab"], ["ab, ab, ab, ab"]],
    ),
    "nothing": (series(), [[""]], [["a"]]),
    "a control token is not its text": (series(TokenPart(OPEN), TextPart("a")), [[OPEN, "a"]], [["<o>a"], ["a"]]),
    "text is not its control token": (TextPart("<o>"), [["<o>"]], [[OPEN]]),
    "free text up to a marker": (
        MARKED,
        [["<o>1"], ["a<o>1"], [OPEN, "1"], ["é\n", OPEN, "1"], ["<<o>1"], ["[o]x"], ["a [o][o]x"[:5], "x"]],
        [["<o>"], ["a"], ["a<o>x"], ["[o]1"], [CLOSE, "<o>1"], ["a", OPEN, "x"], ["[o]a<o>1"]],
    ),
    "free text to the end": (FreePart((Marker("ab"),)), [[""], ["a"], ["ba"], ["a b"]], [["ab"], ["xaby"]]),
    "free text that does not begin so": (
        FreePart((), "[{"),
        [[""], ["a {"], ["\n a"], ["<["]],
        [["{"], [" \n["], ["[a"]],
    ),
    "a marker inside another": (
        FreeUntilPart((Trigger((Marker("\n<x"),), TextPart("1")), Trigger((Marker("<x"),), TextPart("2")))),
        [["\n<x1"], ["a<x2"], ["<\n<x1"]],
        [["\n<x2"], ["a<x1"]],
    ),
    "texts kept out of free text": (
        FreeUntilPart((Trigger((Marker("."),), TextPart("")),), without=("stop",)),
        [["sto."]],
        [["stop."]],
    ),
    "a Lark grammar": (
        series(TextPart("<"), LarkPart('start: "a" b\nb: /[0-9]+/'), TextPart(">")),
        [["<a1>"]],
        [["<b>"]],
    ),
    "a pattern": (series(PatternPart("[a-c]{2}"), TextPart("!")), [["ab!"]], [["a!"], ["abc!"]]),
    "a choice of repeated blocks": (
        RepeatPart(AlternativesPart((series(TextPart("<a>"), INTEGER), TextPart("<b>")))),
        [[""], ["<a>1<b><a>2"]],
        [["<a><b>"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_parts_take_what_they_say(name: str) -> None:
    part, right, wrong = TAKEN[name]
    assert [text for text in right if not accepts(part, text)] == []
    assert [text for text in wrong if accepts(part, text)] == []


def test_rules_name_each_other_and_themselves() -> None:
    rules = (("loop", LOOP),)
    for text in ([""], ["a"], ["a", OPEN, "1", CLOSE], ["<o>1", CLOSE, "b<o>2", CLOSE, "c"]):
        assert accepts(RulePart("loop"), text, rules), text
    for text in (["<o>"], [OPEN], [OPEN, "1"], ["<o>1", CLOSE, "b<o>x"]):
        assert not accepts(RulePart("loop"), text, rules), text


def test_structural_tags_are_parts() -> None:
    spec = StructuralTagSpec((StructuralTag("<f=a>", b'{"type": "integer"}', "</f>"),), ("<f=",))
    grammar = COMPILER.compile(spec)
    assert not isinstance(grammar, GrammarRefusal)
    text = list(b"Hi <f <f=a>1</f> and <f=a>22</f>.")
    assert grammar.make_matcher().legal_prefix([*text, EOS]) == len(text) + 1
    assert grammar.make_matcher().legal_prefix(list(b"<f=b")) == 3


def deep(depth: int) -> GrammarPart:
    part: GrammarPart = TextPart("a")
    for _ in range(depth - 1):
        part = SeriesPart((part,))
    return part


def test_nesting_is_bounded() -> None:
    assert accepts(deep(MAX_SCHEMA_DEPTH), ["a"])
    refusal = refusal_of(deep(MAX_SCHEMA_DEPTH + 1))
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_depth", MAX_SCHEMA_DEPTH)


def test_the_number_of_parts_is_bounded() -> None:
    parts = tuple(RepeatPart(TextPart(str(i))) for i in range(MAX_SCHEMA_NODES // 2 + 1))
    refusal = refusal_of(SeriesPart(parts))
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_nodes", MAX_SCHEMA_NODES)


def test_the_size_of_all_parts_together_is_bounded() -> None:
    half = TextPart("a" * (MAX_SCHEMA_BYTES // 2 + 1))
    refusal = refusal_of(SeriesPart((half, half)))
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.value) == ("schema_bytes", MAX_SCHEMA_BYTES)


WRONG: dict[str, tuple[GrammarPart, tuple[tuple[str, GrammarPart], ...]]] = {
    "an unknown rule": (RulePart("x"), ()),
    "two rules of one name": (RulePart("x"), (("x", TextPart("a")), ("x", TextPart("b")))),
    "no alternatives": (AlternativesPart(()), ()),
    "an end token": (TokenPart(EOS), ()),
    "no marker": (FreeUntilPart(()), ()),
    "half a character": (TextPart("\ud83d"), ()),
    "a token outside": (TokenPart(9999), ()),
    "never": (RepeatPart(TextPart("a"), most=0), ()),
    "too often": (RepeatPart(TextPart("a"), least=MAX_REPEATS + 1), ()),
    "a pattern that is none": (PatternPart("("), ()),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_say_nothing_are_refused(name: str) -> None:
    assert refusal_of(*WRONG[name]).kind is RefusalKind.INVALID_SCHEMA


PLACES: list[tuple[Any, str]] = [
    (b'{"properties": {"a": {"$dynamicRef": "#x"}}}', "tools[1].p/properties/a/$dynamicRef"),
    (b'{"properties": {"a": {"pattern": "a(?=b)"}}}', "tools[1].p/properties/a/pattern"),
    (b'{"properties": {"a": {"pattern": "[b-a]"}}}', "tools[1].p/properties/a/pattern"),
    (b'{"allOf": [{"type": "string"}, {"type": "null"}]}', "tools[1].p"),
    (b'{"type": 3}', "tools[1].p/type"),
    (b"{", "tools[1].p"),
]


@pytest.mark.parametrize(("schema", "path"), PLACES, ids=[str(i) for i in range(len(PLACES))])
def test_a_refusal_says_which_schema_and_where(schema: bytes, path: str) -> None:
    refusal = refusal_of(series(JsonPart(b"true", "tools[0].p"), JsonPart(schema, "tools[1].p")))
    assert refusal.path is not None
    assert refusal.path.startswith(path)


def test_a_composite_crosses_the_process_boundary() -> None:
    rule = GrammarRule(CompositeSpec(series(MARKED, RepeatPart(INTEGER, TextPart(","), 1, 4)), (("loop", LOOP),)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rule), type=GrammarRule) == rule
