"""Bounds of a lowered schema that its text does not show: what a backend would do for it takes too long, or too deep.

llguidance walks the rules of a grammar by recursion, and a stack that is used up ends the process. References lead from
rule to rule, so the bound is over whole paths: the longest that could be walked without meeting a rule twice. Rules
that refer to each other in circles count together. Its machines for multiples have a state for each remainder.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.refusal import Refused, too_complex
from tidegate.grammar.schema.counted_lengths import count_lengths, require_countable

MAX_RULE_DEPTH = 500
"""Levels of schemas within schemas, references followed. On a stack of 8 MiB, llguidance dies at about 2,000."""

MAX_PROPERTIES = 300
"""Names that could come next in one place, those of all cases of a value together: a mask has to look at all of them.
llguidance's parser holds four items for each (`llguidance_limits.MAX_ROW_ITEMS`).
"""

MAX_MULTIPLE = 100_000
"""The least common multiple of what one value must be a multiple of, in units of its last decimal."""


def check_bounds(lowered: dict[str, Any]) -> None:
    """Raises Refused with the limit that is exceeded."""
    root, definitions = _rules(lowered)
    circles = _check_depth({"": root, **definitions})
    _Widths(definitions).check([root, *definitions.values()])
    _Multiples(definitions).check([root, *definitions.values()])
    require_countable(count_lengths(root, definitions, circles))


def check_beside(schemas: Iterable[dict[str, Any]]) -> None:
    """Raises Refused where lowered schemas that are read at one place count too much together."""
    total = 0
    for lowered in schemas:
        root, definitions = _rules(lowered)
        edges = {name: _levels(rule)[1] for name, rule in definitions.items()}
        total += count_lengths(root, definitions, _components(edges))
    require_countable(total)


def _rules(lowered: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {key: value for key, value in lowered.items() if key != "$defs"}, lowered.get("$defs", {})


def _check_depth(rules: dict[str, Any]) -> list[frozenset[str]]:
    """Returns the circles of rules, those that are referred to first."""
    weights: dict[str, int] = {}
    edges: dict[str, list[str]] = {}
    for name, rule in rules.items():
        weights[name], edges[name] = _levels(rule)
    deepest: dict[str, int] = {}
    circles = _components(edges)
    for members in circles:
        behind = [deepest[after] for name in members for after in edges[name] if after not in members]
        depth = sum(weights[name] for name in members) + max(behind, default=0)
        deepest.update(dict.fromkeys(members, depth))
        if depth > MAX_RULE_DEPTH:
            limit = LimitFact("schema_rule_depth", MAX_RULE_DEPTH, depth)
            raise too_complex("references lead too deep", limit, "")
    return circles


def _levels(rule: Any) -> tuple[int, list[str]]:
    """Returns how deep the schemas of a rule are nested, and which rules it refers to."""
    deepest = 1
    found: dict[str, None] = {}
    waiting = [(rule, 1)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, dict):
            deepest = max(deepest, depth)
            if isinstance(node.get("$ref"), str):
                found[node["$ref"].rpartition("/")[2]] = None
            waiting += [(part, depth + 1) for key, part in node.items() if key not in ("enum", "const")]
        elif isinstance(node, list):
            waiting += [(part, depth) for part in node]
    return deepest, list(found)


def _components(edges: dict[str, list[str]]) -> list[frozenset[str]]:
    """Returns groups of rules that reach each other, those that are referred to first (Tarjan's order)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: dict[str, None] = {}
    found: list[frozenset[str]] = []
    for start in edges:
        work = [(start, iter(edges[start]))] if start not in order else []
        while work:
            name, following = work[-1]
            if name not in order:
                order[name] = lowest[name] = len(order)
                open_names[name] = None
            after = next(following, None)
            if after is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    members = [name]
                    while (last := open_names.popitem()[0]) != name:
                        members.append(last)
                    found.append(frozenset(members))
            elif after not in order:
                work.append((after, iter(edges[after])))
            elif after in open_names:
                lowest[name] = min(lowest[name], order[after])
    return found


class _Widths:
    """How many names of properties could come next. `check_circles` of the lowering is over."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._known: dict[str, int] = {}

    def check(self, nodes: list[Any]) -> None:
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                self._width(node)
                waiting += [part for key, part in node.items() if key not in ("enum", "const")]
            elif isinstance(node, list):
                waiting += node

    def _width(self, schema: Any) -> int:
        """Returns the sum over all cases of a value; a required name stands before those that follow it."""
        if not isinstance(schema, dict):
            return 0
        properties, required = schema.get("properties", {}), schema.get("required", ())
        width = sum(name not in required for name in properties) if isinstance(properties, dict) else 0
        width += sum(self._width(part) for key in ("allOf", "anyOf") for part in schema.get(key, ()))
        if isinstance(schema.get("$ref"), str):
            width += self._of_definition(schema["$ref"].rpartition("/")[2])
        if width > MAX_PROPERTIES:
            limit = LimitFact("schema_properties", MAX_PROPERTIES, width)
            raise too_complex("too many properties could come next in one place", limit)
        return width

    def _of_definition(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._width(self._definitions[name])
        return self._known[name]


class _Multiples:
    """`check_circles` of the lowering is over: on one value no reference leads back."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._known: dict[str, Fraction | None] = {}

    def check(self, nodes: list[Any]) -> None:
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                self._step(node)
                waiting += [part for key, part in node.items() if key not in ("enum", "const")]
            elif isinstance(node, list):
                waiting += node

    def _step(self, schema: Any) -> Fraction | None:
        """Returns a bound of what a value of this schema must be a multiple of, over all its cases."""
        if not isinstance(schema, dict):
            return None
        steps = [self._step(part) for key in ("allOf", "anyOf") for part in schema.get(key, ())]
        if isinstance(schema.get("multipleOf"), int | float):
            steps.append(Fraction(repr(schema["multipleOf"])))
        if isinstance(schema.get("$ref"), str):
            steps.append(self._of_definition(schema["$ref"].rpartition("/")[2]))
        common: Fraction | None = None
        for step in steps:
            if step is not None:
                common = step if common is None else _common(common, step)
        if common is not None:
            _require_small(common)
        return common

    def _of_definition(self, name: str) -> Fraction | None:
        if name not in self._known:
            self._known[name] = self._step(self._definitions[name])
        return self._known[name]


def _common(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(lcm(one.numerator, other.numerator), gcd(one.denominator, other.denominator))


def _require_small(step: Fraction) -> None:
    scaled = step.numerator
    while step.denominator > 1:
        step *= 10
        scaled = step.numerator
    if scaled > MAX_MULTIPLE:
        raise _too_large(scaled)


def _too_large(scaled: int) -> Refused:
    limit = LimitFact("schema_multiple", MAX_MULTIPLE, scaled)
    return too_complex("multipleOf asks for too large a common multiple", limit)
