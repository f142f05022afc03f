"""Custom tools whose text is a sentence of a Lark grammar, in every family: forced, walked, and read again."""

import json
from functools import cache
from typing import Any

import pytest

from harness.parsed_output import counting_ids, read_output
from harness.tool_walk import WalkVocabulary, byte_vocabulary, marked_vocabulary
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_parts import LarkPart
from tidegate.inference.grammar_spec import LarkSpec
from tidegate.parsers.build_parser import build_parser, family_named
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tool_format import BraceCalls, TagCalls
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

PLACE = "tools[0].custom.format.grammar.definition"
NAMES = sorted(FAMILIES)
RAW = [name for name in NAMES if isinstance(FAMILIES[name].style, TagCalls | BraceCalls)]
STYLES = ["hermes", "mistral", "qwen3_coder", "seed_oss", "glm45", "pythonic", "gemma4", "harmony", "json"]

SUM = """
start: sum
?sum: product (("+" | "-") product)*
?product: atom (("*" | "/") atom)*
atom: NUMBER | "(" sum ")" | "-" atom -> minus
NUMBER: /[0-9]+(\\.[0-9]+)?/
%ignore " "
"""
QUOTED = r"""
start: line (NL line)*
line: name "=" value
name: "clé" | "name"i
value: "\"" TEXT? "\"" | PATH | word
TEXT: /[^"]+/
PATH: DRIVE ("\\" /[a-z]+/)+
DRIVE: "A".."C" ":"
word: /\w{2,4}/
NL: /\r?\n/
"""
MARKUP = r"""
start: item+
item: TEXT | "<" NAME ">" item* "</" NAME ">" | "<" NAME "/>"
TEXT: /[^<]+/
NAME: /[a-z]+/
"""
COMMENTED = r"""
start: (WORD | COMMENT | OP)*
WORD: /[a-z]+/
OP: "<" | "<=" | "\n"
COMMENT: "<!--" /(?s:.)*/ "-->"
"""
GRAMMARS = {"sum": SUM, "quoted": QUOTED, "markup": MARKUP, "commented": COMMENTED}
SENTENCES: list[tuple[str, list[str], list[str]]] = [
    ("sum", ["1", "(1.5 + 2)*-3", "1  +  1", "((7))/2"], ["", "1+", " 1", "(1", "1 1", "a", "1\n+1", "1."]),
    ("quoted",
     ['clé="a\\b\nc\té😀"', 'NaMe=""', "clé=C:\\ab\\n", "clé=été\r\nname=ab", 'clé="\\"\nname="\\\\"', "name=éé"],
     ["cle=ab", 'clé="a', 'clé=""a', "clé=C:", "clé=D:\\a", "clé=a", "name=ab\n", 'clé="a""', 'clé="a\\""']),
    ("markup", ["a", "<a/>", "<a>x</b>", "<par>a b\n<c/></par>", "\"\\\""], ["<", "<a>", "<A/>", "<a></", "<a/", ""]),
    ("commented", ["", "a<b", "a<=b<", "<!-- x < \"y\" -->", "a\n<"], ["A", "<!-", "<!-- a", "a>", "-->"]),
]  # fmt: skip


@cache
def raw_grammar(source: str) -> Any:
    return byte_vocabulary().compiler.compile(LarkSpec(source))


def is_sentence(source: str, text: str) -> bool:
    """As llguidance reads the caller's own text of the grammar."""
    return byte_vocabulary().accepts(raw_grammar(source), text)


@cache
def forced(name: str, source: str, vocabulary: WalkVocabulary | None = None) -> Any:
    used = vocabulary or byte_vocabulary()
    tools = [GrammarTool("f", is_strict=True, text=LarkPart(source, PLACE))]
    spec = tool_grammar(FAMILIES[name], tools, used.tokens, is_required=True, allows_many=False)
    assert spec is not None
    return used.compiler.compile(spec)


def call_of(name: str, text: str) -> str:
    """Returns a call whose input is `text`, as the family writes it."""
    is_raw = name in RAW
    written = text if is_raw else json.dumps(text, ensure_ascii=False)[1:-1]
    return FAMILIES[name].example.replace("tide_at", "f").replace("port", "input").replace("Brest", written)


def inputs_of(name: str, output: str, *, is_streamed: bool = False) -> list[str]:
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    parser = build_parser(family_named(name), OfferedTools([("f", schema)], ["f"]), counting_ids())
    return read_output(parser, list(output) if is_streamed else [output]).arguments


CASES = [(name, key) for name in NAMES for key in GRAMMARS]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_forced_call_carries_sentences_and_nothing_else(name: str, key: str) -> None:
    source = GRAMMARS[key]
    grammar = forced(name, source)
    assert not isinstance(grammar, GrammarRefusal), grammar
    _, right, wrong = next(row for row in SENTENCES if row[0] == key)
    for text in right:
        assert is_sentence(source, text), text
        written = call_of(name, text)
        if inputs_of(name, written) != [text]:
            continue
        assert byte_vocabulary().accepts(grammar, written), written
        assert inputs_of(name, written, is_streamed=True) == [text]
    for text in wrong:
        assert not is_sentence(source, text), text
        assert not byte_vocabulary().accepts(grammar, call_of(name, text)), text


def hints_of(name: str, key: str) -> list[str]:
    ends = {"sum": [")", "1"], "quoted": ['"', '\\"', "\\\\", "="], "markup": ["</", ">", "<a/>"], "commented": ["-->"]}
    form = FAMILIES[name]
    more = form.style.value_ends if isinstance(form.style, TagCalls) else ()
    more += (form.style.quote,) if isinstance(form.style, BraceCalls) else ()
    return [*ends[key], *form.closes, *more, '"}', "}", ")]"]


@pytest.mark.parametrize(("name", "key"), [case for case in CASES if case[0] in {*STYLES, *RAW}])
def test_random_walks_end_in_sentences(name: str, key: str) -> None:
    source = GRAMMARS[key]
    vocabularies = [byte_vocabulary()] + ([marked_vocabulary(FAMILIES[name])] if name in STYLES else [])
    for vocabulary in vocabularies:
        grammar = forced(name, source, vocabulary)
        assert not isinstance(grammar, GrammarRefusal), grammar
        num_ended = 0
        for seed in range(8):
            if num_ended == 2:
                break
            written = vocabulary.walk(grammar, hints_of(name, key), seed, most=250)
            if written is not None:
                num_ended += 1
                inputs = inputs_of(name, written)
                assert len(inputs) == 1, written
                assert is_sentence(source, inputs[0]), (written, inputs[0])
        assert num_ended


COMMON_TEXTS = {
    "INT": "12", "SIGNED_FLOAT": "-1.5e3", "NUMBER": "7", "ESCAPED_STRING": '"a\\"b"', "CNAME": "_a1", "WS": " \n",
    "NEWLINE": "\r\n", "SH_COMMENT": "# a", "C_COMMENT": "/* a **/", "SQL_COMMENT": "-- a", "DECIMAL": ".5",
    "WORD": "ab",
}  # fmt: skip


@pytest.mark.parametrize("terminal", sorted(COMMON_TEXTS))
def test_imported_terminals_are_those_of_the_backend(terminal: str) -> None:
    source = f"%import common.{terminal}\nstart: {terminal}"
    text = COMMON_TEXTS[terminal]
    assert is_sentence(source, text)
    for name in ("hermes", "glm45"):
        assert byte_vocabulary().accepts(forced(name, source), call_of(name, text))
        for wrong in (f"{text}\u00e9x;", text[:-1] + "\x7f", f"?{text}"):
            accepted = byte_vocabulary().accepts(forced(name, source), call_of(name, wrong))
            assert accepted is is_sentence(source, wrong), wrong
