"""What llguidance says about a grammar that it refuses, as words for a caller.

Its text points into the grammar that was made here, which the caller has never seen, and repeats input at any length.
Kept are what is wrong, and for a grammar of the caller's own, where.
"""

import re

_PLACE = re.compile(r"^(?:at )?(\d+)\((\d+)\): ")
_DETAIL = re.compile(r"^error: (.+)$", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LONG_RUN = re.compile(r"\S{65,}")
_MAX_QUOTED = 64
_MAX_CHARACTERS = 200
_WITHOUT_USE = ("failed to compile JSON schema: ", "Unsatisfiable schema: ")
_TOO_COMPLEX = ("too large", "too complex", "fuel", "limit", "too many", "exceeded", "too big")
_UNSUPPORTED = ("not supported", "Unicode property not found")


def say(error: str, *, hidden_lines: int | None) -> str:
    """Returns one line of at most 200 characters, no more than 64 of them in a row from the input.

    `hidden_lines` stand before the caller's own grammar; None: the grammar is not the caller's, and has no places.
    """
    line = error.strip().partition("\n")[0]
    place = _PLACE.match(line)
    line = _PLACE.sub("", line)
    for words in _WITHOUT_USE:
        line = line.removeprefix(words)
    if detail := _DETAIL.search(error):
        line = f"in a regular expression: {detail[1]}"
    line = _QUOTED.sub(lambda found: f"'{_cut(found[1])}'", line)
    line = _LONG_RUN.sub(lambda found: _cut(found[0]), line)[:_MAX_CHARACTERS]
    if place is None or hidden_lines is None:
        return line
    return f"line {max(int(place[1]) - hidden_lines, 1)}, column {place[2]}: {line}"


def is_about_support(error: str) -> bool:
    """Whether it is valid elsewhere, and not carried here."""
    return any(words in error for words in _UNSUPPORTED)


def is_about_size(error: str) -> bool:
    """Whether a limit was met."""
    return any(words in error.lower() for words in _TOO_COMPLEX)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "..."
