"""What a grammar of a custom tool is refused for, and how much of one there may be."""

from typing import Any

import pytest

from harness.tool_walk import byte_vocabulary
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_parts import LarkPart
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

PLACE = "tools[0].custom.format.grammar.definition"


def forced(name: str, source: str) -> Any:
    tools = [GrammarTool("f", is_strict=True, text=LarkPart(source, PLACE))]
    spec = tool_grammar(FAMILIES[name], tools, byte_vocabulary().tokens, is_required=True, allows_many=False)
    assert spec is not None
    return byte_vocabulary().compiler.compile(spec)


LONG_RULES = "start: a0\n" + "".join(f"a{i}: a{i + 1}\n" for i in range(790)) + 'a790: "x"\n'
REFUSED: list[tuple[str, RefusalKind]] = [
    ('start: "a', RefusalKind.INVALID_SCHEMA),
    ("start: nowhere", RefusalKind.INVALID_SCHEMA),
    ('other: "a"', RefusalKind.INVALID_SCHEMA),
    ("start: /(/", RefusalKind.INVALID_SCHEMA),
    ('start: "a" }\nx: %lark { start: "b"', RefusalKind.INVALID_SCHEMA),
    ("%declare A\nstart: A", RefusalKind.UNSUPPORTED_SCHEMA),
    ('start: %json {"type": "object"}', RefusalKind.UNSUPPORTED_SCHEMA),
    ('%llguidance {}\nstart: "a"', RefusalKind.UNSUPPORTED_SCHEMA),
    ("start: <|end|>", RefusalKind.UNSUPPORTED_SCHEMA),
    ("start: <[1]>", RefusalKind.UNSUPPORTED_SCHEMA),
    ('start: %lark {\nstart: "a"\n}', RefusalKind.UNSUPPORTED_SCHEMA),
    ('start[lazy]: /a*/', RefusalKind.UNSUPPORTED_SCHEMA),
    ('start[max_tokens=3]: /a*/', RefusalKind.UNSUPPORTED_SCHEMA),
    ('start: %regex { "substring_words": "a b" }', RefusalKind.UNSUPPORTED_SCHEMA),
    ('start: A\nA: "a" & /b/', RefusalKind.UNSUPPORTED_SCHEMA),
    ("start: /^a$/", RefusalKind.UNSUPPORTED_SCHEMA),
    ("start: /a b/x", RefusalKind.UNSUPPORTED_SCHEMA),
    (LONG_RULES + 'b: "c"\n' * 20, RefusalKind.GRAMMAR_TOO_COMPLEX),
    ("start: " + "(" * 70 + '"a"' + ")" * 70, RefusalKind.GRAMMAR_TOO_COMPLEX),
]  # fmt: skip


@pytest.mark.parametrize("name", ["hermes", "pythonic", "glm45", "gemma4"])
@pytest.mark.parametrize(("source", "kind"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_be_carried_into_a_call_is_refused_at_the_definition(
    name: str, source: str, kind: RefusalKind
) -> None:
    refusal = forced(name, source)
    assert isinstance(refusal, GrammarRefusal)
    assert (refusal.kind, refusal.path) == (kind, PLACE), refusal


@pytest.mark.parametrize("name", ["hermes", "glm45"])
def test_a_grammar_of_many_rules_harms_nobody(name: str) -> None:
    for source in (LONG_RULES, LONG_RULES.replace('"x"', r'/[^"]*/ "\"" "\\"')):
        grammar = forced(name, source)
        assert not isinstance(grammar, GrammarRefusal) or grammar.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
        assert not isinstance(grammar, GrammarRefusal) or grammar.path == PLACE


BOUNDS: list[tuple[str, str, RefusalKind]] = [
    ("hermes", "start: " + " ".join(f"a{i}" for i in range(700)) + "\n"
     + "".join(f'a{i}: (("x" "\\"q" | "y{i}")* /q\\n/)*\n' for i in range(700)), RefusalKind.GRAMMAR_TOO_COMPLEX),
    ("hermes", 'start: (A | B)~100\nA: "a\\n"\nB: "\\n"', RefusalKind.GRAMMAR_TOO_COMPLEX),
    ("hermes", "start: " + '"a" ' * 20_001, RefusalKind.GRAMMAR_TOO_COMPLEX),
    ("hermes", "start: /" + "(" * 66 + "a" + ")" * 66 + "/", RefusalKind.UNSUPPORTED_SCHEMA),
    ("glm45", "start: /((((a|b){16}){16}){16}){2}/ /</", RefusalKind.GRAMMAR_TOO_COMPLEX),
]  # fmt: skip


@pytest.mark.parametrize(("name", "source", "kind"), BOUNDS, ids=["rules", "repeats", "words", "groups", "states"])
def test_a_grammar_inside_a_call_has_bounds(name: str, source: str, kind: RefusalKind) -> None:
    refusal = forced(name, source)
    assert isinstance(refusal, GrammarRefusal)
    assert (refusal.kind, refusal.path) == (kind, PLACE), refusal
