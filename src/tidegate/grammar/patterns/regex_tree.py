"""Regular expressions as trees, for backends that have none of their own that could be trusted.

Read is what Rust's and ECMA-262's syntax have in common, as `ecma_pattern.py` writes it. `\\d`, `\\w` and `\\s` are
those of ASCII. Whatever is not known here is refused: look-around, back references, word borders, flags, classes by
property.
"""

from dataclasses import dataclass
from typing import NoReturn

from tidegate.grammar.patterns.char_set import EVERY, Ranges, char_set, complement
from tidegate.grammar.refusal import invalid, unsupported

MAX_REGEX_DEPTH = 100
"""Groups within groups."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` is None where there is no bound."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """`^`, or `$`."""

    is_start: bool


Node = Chars | Sequence | Choice | Repeat | Edge

_NEWLINE: Ranges = ((0x0A, 0x0A),)
_CLASSES: dict[str, Ranges] = {
    "d": char_set([(0x30, 0x39)]),
    "w": char_set([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]),
    "s": char_set([(0x09, 0x0D), (0x20, 0x20)]),
}
_CONTROLS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D, "a": 0x07}


def parse_regex(pattern: str) -> Node:
    """Raises Refused."""
    parser = _Parser(pattern)
    node = parser.alternatives(0)
    if parser.position < len(pattern):
        raise invalid("a parenthesis too many in a regular expression")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self._dot = [complement(_NEWLINE)]

    def _peek(self) -> str:
        return self._text[self.position : self.position + 1]

    def _take(self, text: str) -> bool:
        is_there = self._text.startswith(text, self.position)
        self.position += len(text) if is_there else 0
        return is_there

    def _next(self) -> str:
        if self.position >= len(self._text):
            raise invalid("a regular expression that does not end")
        self.position += 1
        return self._text[self.position - 1]

    def alternatives(self, depth: int) -> Node:
        if depth > MAX_REGEX_DEPTH:
            raise unsupported("groups of a regular expression nested so deeply")
        options = [self._sequence(depth)]
        while self._take("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))
        return Sequence(tuple(parts))

    def _repeated(self, node: Node) -> Node:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
        if bounds is not None:
            self.position += 1
        elif self._peek() == "{":
            bounds = self._counts()
        if bounds is None:
            return node
        if isinstance(node, Edge):
            _refuse("a repeated anchor")
        if self._peek() == "+":
            _refuse("possessive repetition")
        self._take("?")
        if self._peek() in ("*", "{") and self._peek():
            _refuse("repeated repetition")
        return Repeat(node, *bounds)

    def _counts(self) -> tuple[int, int | None]:
        end = self._text.find("}", self.position)
        low, comma, high = self._text[self.position + 1 : max(end, 0)].partition(",")
        if not (low.isascii() and low.isdigit() and len(low) < 9) or (high and not (high.isdigit() and len(high) < 9)):
            _refuse("a brace that is no count")
        self.position = end + 1
        most = int(high) if high else None if comma else int(low)
        if most is not None and most < int(low):
            raise invalid("a count whose bounds are the wrong way round")
        return int(low), most

    def _atom(self, depth: int) -> Node:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(self._dot[-1])
            case "^" | "$":
                return Edge(character == "^")
            case "\\":
                return Chars(self._escape())
            case "*" | "+" | "?" | "{":
                raise invalid("a repetition of nothing in a regular expression")
        return Chars(char_set([(ord(character), ord(character))]))

    def _group(self, depth: int) -> Node:
        dot = self._dot[-1]
        if self._take("?s:"):
            dot = EVERY
        elif not self._take("?:") and self._peek() == "?":
            _refuse("a group with flags, a name or a condition")
        self._dot.append(dot)
        node = self.alternatives(depth + 1)
        self._dot.pop()
        if not self._take(")"):
            raise invalid("a group of a regular expression that is not closed")
        return node

    def _class(self, depth: int = 0) -> Ranges:
        if depth > MAX_REGEX_DEPTH:
            _refuse("classes nested so deeply")
        is_complement = self._take("^")
        found: list[tuple[int, int]] = []
        if self._peek() == "]":
            _refuse("a class that begins with its end")
        while not self._take("]"):
            if self._text.startswith(("&&", "--", "~~", "[:"), self.position):
                _refuse("operations on classes")
            if self._take("["):
                found += self._class(depth + 1)
                continue
            if is_complement and self._text.startswith(("\\d", "\\w", "\\s"), self.position):
                _refuse("a complement of \\d, \\w or \\s, which other languages read as wider classes,")
            first = self._class_item()
            is_range = self._peek() == "-" and self._text[self.position + 1 : self.position + 2] not in ("]", "")
            if is_range and len(first) == 1 and first[0][0] == first[0][1]:
                self.position += 1
                last = self._class_item()
                if len(last) != 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
                    raise invalid("a range of characters that is none")
                first = ((first[0][0], last[0][0]),)
            found += first
        ranges = char_set(found)
        return complement(ranges) if is_complement else ranges

    def _class_item(self) -> Ranges:
        character = self._next()
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)

    def _escape(self) -> Ranges:
        letter = self._next()
        if letter in _CLASSES:
            return _CLASSES[letter]
        code = _CONTROLS.get(letter)
        if letter in "xuU" and code is None:
            code = self._code_point(letter)
        elif code is None and (letter.isalnum() or not letter.isascii()):
            _refuse(f"\\{letter} in a regular expression")
        code = ord(letter) if code is None else code
        return ((code, code),)

    def _code_point(self, letter: str) -> int:
        if self._take("{"):
            end = self._text.find("}", self.position)
            digits = self._text[self.position : max(end, 0)]
            self.position = end + 1
        else:
            size = {"x": 2, "u": 4, "U": 8}[letter]
            digits = self._text[self.position : self.position + size]
            self.position += size
        if not digits or len(digits) > 8 or set(digits) - set("0123456789abcdefABCDEF") or int(digits, 16) > 0x10FFFF:
            raise invalid("a character number that is none")
        return int(digits, 16)


def _refuse(what: str) -> NoReturn:
    raise unsupported(f"{what} is not read by this backend")
