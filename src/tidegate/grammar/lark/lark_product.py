"""A caller's grammar in another notation: each rule once for each pair of places where its text begins and ends.

What places are, and how terminals are written between two of them, a boundary says. A rule has a form only where some
text has it, so nothing that can be begun is without an end. What is ignored stands between two terminals, neither
before the first nor behind the last.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

from tidegate.errors import LimitFact
from tidegate.grammar.lark.lark_text import NOTHING, LarkText
from tidegate.grammar.lark.lark_tree import LarkGrammar, Name, Options, Series, Times, Tree
from tidegate.grammar.refusal import too_complex

MAX_EMBEDDED_RULES = 1600
"""Rules and terminals that one grammar becomes inside a call; llguidance recurses over them (`lark_bounds.py`)."""

MAX_STEPS = 200_000
"""Looks at parts of one grammar, about a microsecond each: rules that name each other are looked at again and again."""

MAX_UNROLLED = 64
"""Repetitions that are written one by one, where places differ between them."""

Place = tuple[Hashable, bool]
"""A boundary's place, and whether nothing has been written yet."""


class Boundary(Protocol):
    """`variants`: the forms of a terminal from a place, none of them empty, by the places where they end."""

    @property
    def start(self) -> Hashable: ...

    def variants(self, name: str, place: Hashable, /) -> Mapping[Hashable, str]: ...


class LarkProduct:
    def __init__(self, text: LarkText, grammar: LarkGrammar, boundary: Boundary) -> None:
        self._text = text
        self._grammar = grammar
        self._boundary = boundary
        self._ends: dict[tuple[str, Place], set[Place]] = {}
        self._names: dict[tuple[str, Place, Place], str] = {}
        self._waiting: list[tuple[str, Place]] = []
        self._variants: dict[tuple[str, Hashable], Mapping[Hashable, str]] = {}
        self._stars: dict[tuple[int, Place], dict[Place, str]] = {}
        self._reached: dict[tuple[int, Place], set[Place]] = {}
        self._asked: set[tuple[str, Place]] = set()
        self._num_steps = 0
        self._num_before = text.num_names
        self._skip = None if grammar.ignored is None else Name(grammar.ignored)

    def sentences(self) -> dict[Hashable, str]:
        """Returns the rules of the sentences by the places where they end. Raises Refused."""
        start = (self._boundary.start, self._skip is not None)
        self._solve(("start", start))
        found = self._emit(Name("start"), start)
        while self._waiting:
            rule, place = self._waiting.pop()
            for end, expression in self._emit(self._grammar.rules[rule], place).items():
                self._text.define(self._names[rule, place, end], expression)
        ends: dict[Hashable, list[str]] = {}
        for place, expression in found.items():
            ends.setdefault(place[0], []).append(expression)
        return {place: self._text.rule(" | ".join(options)) for place, options in ends.items()}

    def _check(self, most: int, number: int) -> None:
        if number > most:
            raise too_complex("the grammar has too many rules inside a call", LimitFact("grammar_rules", most, number))

    def _count(self) -> None:
        self._num_steps += 1
        self._check(MAX_STEPS, self._num_steps)
        self._check(MAX_EMBEDDED_RULES, self._text.num_names - self._num_before)

    def _solve(self, wanted: tuple[str, Place]) -> None:
        """Finds where every rule that is reached may end."""
        self._ends[wanted] = set()
        askers: dict[tuple[str, Place], set[tuple[str, Place]]] = {}
        waiting = deque([wanted])
        while waiting:
            asked = waiting.popleft()
            self._reached.clear()
            self._asked = set()
            found = self._reach(self._grammar.rules[asked[0]], asked[1])
            for other in self._asked:
                if other not in askers:
                    waiting.append(other)
                askers.setdefault(other, set()).add(asked)
            if not found <= self._ends[asked]:
                self._ends[asked] |= found
                news = askers.get(asked, set()) - set(waiting)
                waiting += sorted(news, key=repr)

    def _reach(self, tree: Tree, place: Place) -> set[Place]:
        self._count()
        key = (id(tree), place)
        if key in self._reached:
            return self._reached[key]
        match tree:
            case Name(name) if name in self._grammar.rules:
                self._asked.add((name, place))
                found = set(self._ends.setdefault((name, place), set()))
            case Name(name):
                found = set(self._lexemes(name, place))
            case Series(parts):
                found = {place}
                for part in parts:
                    found = {end for begin in found for end in self._reach(part, begin)}
            case Options(options):
                found = {end for option in options for end in self._reach(option, place)}
            case Times(part, least, most):
                found = self._reach_times(part, least, most, place)
            case _:
                raise AssertionError(tree)
        self._reached[key] = found
        return found

    def _reach_times(self, part: Tree, least: int, most: int | None, place: Place) -> set[Place]:
        current = {place}
        for _ in range(min(least, MAX_UNROLLED)):
            current = {end for begin in current for end in self._reach(part, begin)}
        found = set(current)
        num_further = MAX_UNROLLED * 4 if most is None else most - least
        while num_further > 0:
            current = {end for begin in current for end in self._reach(part, begin)}
            if current <= found:
                break
            found |= current
            num_further -= 1
        return found

    def _emit(self, tree: Tree, place: Place) -> dict[Place, str]:
        """Returns expressions that may stand in a series, by the places where they end."""
        self._count()
        match tree:
            case Name(name) if name in self._grammar.rules:
                return {end: self._rule(name, place, end) for end in sorted(self._ends[name, place], key=repr)}
            case Name(name):
                return self._lexemes(name, place)
            case Series(parts):
                current = {place: ""}
                for part in parts:
                    current = self._advance(current, part)
                return {end: expression or NOTHING for end, expression in current.items()}
            case Options(options):
                return self._merged(item for option in options for item in self._emit(option, place).items())
            case Times(part, least, most):
                return self._times(part, least, most, place)
        raise AssertionError(tree)

    def _rule(self, name: str, place: Place, end: Place) -> str:
        key = (name, place, end)
        if key not in self._names:
            if not any((name, place, other) in self._names for other in self._ends[name, place]):
                self._waiting.append((name, place))
            for other in self._ends[name, place]:
                self._names.setdefault((name, place, other), self._text.reserve())
        return self._names[key]

    def _lexemes(self, name: str, place: Place) -> dict[Place, str]:
        begin, is_fresh = place
        found: list[tuple[Place, str]] = []
        if self._grammar.is_empty(Name(name)):
            found.append((place, NOTHING))
        befores: dict[Hashable, str] = {begin: ""}
        if self._skip is not None and not is_fresh and name != self._skip.name:
            befores = {end: skipped for (end, _), skipped in self._star(self._skip, place).items()}
        for between, skipped in befores.items():
            forms = self._forms(name, between)
            found += [((end, False), f"{skipped} {form}".strip()) for end, form in forms.items()]
        return self._merged(found)

    def _forms(self, name: str, begin: Hashable) -> Mapping[Hashable, str]:
        key = (name, begin)
        if key not in self._variants:
            self._variants[key] = self._boundary.variants(name, begin)
        return self._variants[key]

    def _advance(self, current: Mapping[Place, str], part: Tree) -> dict[Place, str]:
        return self._merged(
            (end, f"{before} {expression}".strip())
            for begin, before in current.items()
            for end, expression in self._emit(part, begin).items()
        )

    def _merged(self, items: Iterable[tuple[Place, str]]) -> dict[Place, str]:
        options: dict[Place, dict[str, None]] = {}
        for end, expression in items:
            options.setdefault(end, {})[expression] = None
        return {
            end: next(iter(found)) if len(found) == 1 else self._text.rule(" | ".join(found))
            for end, found in options.items()
        }

    def _times(self, part: Tree, least: int, most: int | None, place: Place) -> dict[Place, str]:
        if most == 0:
            return {place: NOTHING}
        current, found = {place: ""}, list[tuple[Place, str]]()
        for done in range(MAX_UNROLLED):
            alone = self._alone(current, part)
            if alone is not None:
                begin, one = alone
                left = max(least - done, 0)
                rest = f"{{{left},{'' if most is None else most - done}}}"
                return self._merged([*found, (begin, f"{current[begin]} {self._text.rule(one)}{rest}".strip())])
            if done >= least:
                found += [(end, before or NOTHING) for end, before in current.items()]
                if most is None:
                    ends = [(b, s, e) for b, before in current.items() for e, s in self._star(part, b).items()]
                    return self._merged((end, f"{current[b]} {star}".strip()) for b, star, end in ends)
            if done == most or not current:
                return self._merged(found)
            current = self._advance(current, part)
        raise too_complex("a part of a grammar inside a call is repeated too often")

    def _alone(self, current: Mapping[Place, str], part: Tree) -> tuple[Place, str] | None:
        """Returns the only place and the part there, where the part ends at the place where it began."""
        if len(current) != 1:
            return None
        begin = next(iter(current))
        ends = self._emit(part, begin)
        return (begin, ends[begin]) if ends.keys() == {begin} else None

    def _star(self, part: Tree, place: Place) -> dict[Place, str]:
        """Returns rules for any number of parts, by the places where they end; each begins with itself."""
        key = (id(part), place)
        if key in self._stars:
            return self._stars[key]
        names = self._stars[key] = {place: self._text.reserve()}
        options: dict[Place, list[str]] = {place: [NOTHING]}
        waiting = [place]
        while waiting:
            begin = waiting.pop()
            for end, expression in self._emit(part, begin).items():
                if end not in names:
                    names[end] = self._text.reserve()
                    waiting.append(end)
                if expression != NOTHING:
                    options.setdefault(end, []).append(f"{names[begin]} {expression}")
        for end, name in names.items():
            self._text.define(name, " | ".join(dict.fromkeys(options[end])))
        return names
