"""What a caller's Lark grammar says, as trees: terminals over characters, rules over terminals.

Terminals and rules are made of the same nodes; only the leaves differ. Knows nothing of how either is written.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character: what the inside of brackets of a regular expression says. `is_cased`: without regard to case."""

    inside: str
    is_any_case: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """A regular expression that is written as it stands."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Name:
    """A terminal or rule by its name; in rules also a terminal that has none of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Series:
    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Options:
    options: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Times:
    """`most` is None where there is no bound."""

    part: "Tree"
    least: int
    most: int | None


Tree = OneOf | Fixed | Name | Series | Options | Times

EMPTY = Series(())


@dataclass(slots=True)
class LarkGrammar:
    """`ignored`: the name of a terminal that may stand between two others, None for none."""

    rules: dict[str, Tree] = field(default_factory=dict)
    terminals: dict[str, Tree] = field(default_factory=dict)
    ignored: str | None = None

    def is_empty(self, tree: Tree, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a terminal's tree matches the empty text."""
        match tree:
            case OneOf() | Fixed():
                return False
            case Name(name):
                return name not in seen and self.is_empty(self.terminals[name], seen | {name})
            case Series(parts):
                return all(self.is_empty(part, seen) for part in parts)
            case Options(options):
                return any(self.is_empty(option, seen) for option in options)
            case Times(part, least, _):
                return least == 0 or self.is_empty(part, seen)
