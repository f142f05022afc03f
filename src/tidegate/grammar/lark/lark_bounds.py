"""Bounds of a caller's own Lark grammar, checked on its text before any parser sees it."""

import re

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES
from tidegate.grammar.refusal import too_complex
from tidegate.grammar.schema.counted_lengths import pattern_lengths, require_countable

MAX_LARK_RULES = 800
"""Rules and terminals, a reference within `%json` counting as three. A chain of 2,400 rules ends a process (see
`lowered_bounds.py`).
"""

MAX_LARK_DEPTH = 64
"""Brackets within brackets, also those of `%json`."""

_DEFINITION = re.compile(r"^[ \t]*[?!]?[A-Za-z_][A-Za-z0-9_]*[^\n:|\"/]*:", re.MULTILINE)
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/(?:[^/\\\n]|\\.)+/')
_REGEX = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/((?:[^/\\\n]|\\.)+)/')
_REFERENCE = re.compile(r'"\$ref"|\$ref')


def check_lark(text: str) -> None:
    """Raises Refused."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise too_complex("the grammar is too large", LimitFact("schema_bytes", MAX_SCHEMA_BYTES, len(text)))
    rules = len(_DEFINITION.findall(text)) + 3 * len(_REFERENCE.findall(text))
    if rules > MAX_LARK_RULES:
        raise too_complex("the grammar has too many rules", LimitFact("grammar_rules", MAX_LARK_RULES, rules))
    require_countable(sum(pattern_lengths(found[1]) for found in _REGEX.finditer(text) if found[1]))
    depth = deepest = 0
    for character in _QUOTED.sub("", text):
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(0, depth - 1)
    if deepest > MAX_LARK_DEPTH:
        raise too_complex("the grammar is nested too deeply", LimitFact("grammar_depth", MAX_LARK_DEPTH, deepest))
