"""Sets of characters as ascending ranges, and how EBNF writes them.

Surrogates are in no set: no text holds them, and a class that is written as a complement would let their bytes in.
"""

from collections.abc import Iterable

from tidegate.grammar.json_text import UNWRITABLE

Ranges = tuple[tuple[int, int], ...]

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_ESCAPES = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '\\"', 0x5C: "\\\\"}
"""What stands behind the backslash in JSON, as EBNF writes it within quotes."""


def _without(ranges: Ranges, holes: Iterable[tuple[int, int]]) -> Ranges:
    left = list(ranges)
    for low, high in holes:
        left = [
            part
            for start, end in left
            for part in ((start, min(end, low - 1)), (max(start, high + 1), end))
            if part[0] <= part[1]
        ]
    return tuple(sorted(set(left)))


def char_set(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the union, without surrogates."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return _without(tuple(merged), (_SURROGATES,))


def complement(ranges: Ranges) -> Ranges:
    return _without(((0, _LAST),), (*ranges, _SURROGATES))


EVERY = complement(())
_UNWRITABLE = tuple((code, code) for code in range(0x20) if UNWRITABLE.match(chr(code)))
_NOT_PLAIN = (*_UNWRITABLE, *((code, code) for code in _ESCAPES))


def plain_class(ranges: Ranges) -> str | None:
    """Returns the set in EBNF, None for the empty one."""
    return "[" + "".join(map(_range, ranges)) + "]" if ranges else None


def json_class(ranges: Ranges) -> str | None:
    """Returns the set as characters of a JSON string are spelled; None when no string of ours holds any of them."""
    options = [plain_class(_without(ranges, _NOT_PLAIN))]
    escaped = [letter for code, letter in _ESCAPES.items() if any(low <= code <= high for low, high in ranges)]
    options += [f'"\\\\{letter}"' for letter in escaped]
    found = [option for option in options if option is not None]
    return f"({' | '.join(found)})" if len(found) > 1 else next(iter(found), None)


def literal(text: str) -> str:
    """Returns text within quotes of EBNF. Text without surrogates."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else _code(ord(c)) for c in text) + '"'


def _range(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
