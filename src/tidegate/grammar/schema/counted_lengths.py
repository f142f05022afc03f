"""How many lengths one place of a text may count beside each other.

A lexer that counts characters has a state for each of them, and in every state one expression for each alternative that
is still open. llguidance keeps all expressions in one table; when it grows, whoever asked for the mask waits until all
have moved. So the bound is on lengths times alternatives: on the sum over everything that may be read at one place.
One length alone costs little, however large.

The sum is rather too large: alternatives are taken to stay open down to the largest part of each. It may be too small
by half for intersections, and for rules that refer to each other in circles, which are looked at twice.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from tidegate.errors import LimitFact
from tidegate.grammar.refusal import too_complex

MAX_COUNTED_LENGTHS = 20_000
"""Characters that strings and patterns count, in sum over the alternatives of one place: a mask is then made within
about 50 ms. 200 alternatives of up to 12,000 took 2.7 s.
"""

MOST_FOLLOWED = 5_600
"""Characters of one string that a lexer can count before it has `llguidance_limits.MAX_LEXER_STATES`; a length beyond
counts as this.
"""

_REPEATED = re.compile(r"\\(?:[xuUpP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}", re.DOTALL)


class Counted(NamedTuple):
    """Of one place: its cases, and the characters that all of them count."""

    cases: int = 1
    characters: int = 0


_NOTHING = Counted()
_MANY = 1_000_000_000
"""No larger number is told."""


def pattern_lengths(pattern: str) -> int:
    """Returns what the repetitions of a regular expression count in sum, as they are written."""
    total = 0
    for found in _REPEATED.finditer(pattern):
        if found[1] is not None:
            total += min(MOST_FOLLOWED, int(found[2] or found[1]))
    return total


def require_countable(characters: int) -> None:
    """Raises Refused."""
    if characters > MAX_COUNTED_LENGTHS:
        limit = LimitFact("schema_lengths", MAX_COUNTED_LENGTHS, characters)
        raise too_complex("too many lengths of texts are counted beside each other", limit)


def count_lengths(root: Any, definitions: dict[str, Any], circles: Iterable[frozenset[str]]) -> int:
    """Returns the characters that the most expensive place of a lowered schema counts.

    `circles`: definitions that reach each other, those that others refer to first.
    """
    lengths = _Lengths()
    for names in circles:
        for name in [*names, *names]:
            if name in definitions:
                lengths.known[name] = lengths.of(definitions[name])
    places = [lengths.of(root), *lengths.known.values()]
    characters = max(place.characters for place in places)
    # Without intersections the same text counted twice is one expression, so there are no more than are written.
    return characters if lengths.are_joined else min(characters, sum(lengths.written.values()))


class _Lengths:
    """`written`: what each string and each pattern of names counts, once. `are_joined`: some hold at once."""

    def __init__(self) -> None:
        self.known: dict[str, Counted] = {}
        self.written: dict[tuple[object, ...], int] = {}
        self.are_joined = False

    def of(self, schema: Any) -> Counted:
        """Returns what a value of this schema counts in its most expensive place."""
        if not isinstance(schema, dict):
            return _NOTHING
        found = _either([self._string(schema), self._inside(schema)])
        for part in schema.get("allOf", ()):
            found = self._both(found, self.of(part))
        if "anyOf" in schema:
            found = self._both(found, _sum([self.of(part) for part in schema["anyOf"]]))
        if isinstance(schema.get("$ref"), str):
            found = self._both(found, self.known.get(schema["$ref"].rpartition("/")[2], _NOTHING))
        return found

    def _inside(self, schema: dict[str, Any]) -> Counted:
        """Returns the most that one member, one item, or the names of members count."""
        by_pattern = schema.get("patternProperties", {})
        inner = [*schema.get("properties", {}).values(), *by_pattern.values(), *schema.get("prefixItems", ())]
        inner += [schema[key] for key in ("additionalProperties", "items") if key in schema]
        names = sum(self._written(pattern_lengths(pattern), "name", pattern) for pattern in by_pattern)
        return _either([Counted(1, names), *(self.of(part) for part in inner)])

    def _string(self, schema: dict[str, Any]) -> Counted:
        types = schema.get("type", "string")
        if "enum" in schema or "const" in schema or "string" not in ([types] if isinstance(types, str) else types):
            return _NOTHING
        least, most, pattern = schema.get("minLength", 0), schema.get("maxLength"), schema.get("pattern", "")
        characters = min(MOST_FOLLOWED, least if most is None else most) + pattern_lengths(pattern)
        return Counted(1, self._written(characters, least, most, pattern))

    def _written(self, characters: int, *key: object) -> int:
        self.written[key] = characters
        return characters

    def _both(self, one: Counted, other: Counted) -> Counted:
        """Of what holds at once: each case of the one with each of the other. Two counts go along one text together."""
        if _NOTHING in (one, other):
            return other if one == _NOTHING else one
        characters = max(one.characters * other.cases, other.characters * one.cases)
        self.are_joined |= characters > 0
        return _bounded(one.cases * other.cases, characters)


def _either(places: list[Counted]) -> Counted:
    """Of places that are never read at once."""
    return Counted(max(place.cases for place in places), max(place.characters for place in places))


def _sum(options: list[Counted]) -> Counted:
    """Of alternatives."""
    return _bounded(sum(option.cases for option in options), sum(option.characters for option in options))


def _bounded(cases: int, characters: int) -> Counted:
    return Counted(min(_MANY, cases), min(_MANY, characters))
