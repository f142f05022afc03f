"""How many members and elements a JSON text has, found before it is parsed: a parser makes all of them in one breath.

Counted are the colons and commas outside strings, in blocks, as `json_depth` does. The bounds are far above what any
request of ours has, and low enough that a parser does not keep other threads waiting.
"""

import numpy as np

from tidegate.contract.bounds import over_limit
from tidegate.contract.json_depth import unescaped_blocks

MAX_MEMBERS = 65_536
"""Names with a value, over all objects of a body."""
MAX_ELEMENTS = 2_097_152
"""Values in lists and objects, over a whole body: more than the tokens of the longest prompts."""

_QUOTE, _COLON, _COMMA = 1, 2, 3
_MARKS = bytes.maketrans(b'":,', bytes((_QUOTE, _COLON, _COMMA)))
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'":,')


def json_size(text: bytes) -> tuple[int, int]:
    """Returns the numbers of colons and commas outside strings."""
    num_colons = num_commas = num_quotes = 0
    for part in unescaped_blocks(text):
        marks = np.frombuffer(part.translate(_MARKS, _NOT_MARKS), np.int8)
        quotes = np.cumsum(marks == _QUOTE, dtype=np.int64) + num_quotes
        outside = marks[quotes & 1 == 0]
        num_colons += int(np.count_nonzero(outside == _COLON))
        num_commas += int(np.count_nonzero(outside == _COMMA))
        num_quotes = int(quotes[-1]) if len(quotes) else num_quotes
    return num_colons, num_commas


def check_json_size(text: bytes) -> None:
    """Raises InvalidValue, with the limit `json_members` or `json_elements`, for a text that has too many."""
    if text.count(b":") <= MAX_MEMBERS and text.count(b",") <= MAX_ELEMENTS:
        return
    num_members, num_elements = json_size(text)
    for name, value, actual in (
        ("json_members", MAX_MEMBERS, num_members),
        ("json_elements", MAX_ELEMENTS, num_elements),
    ):
        if actual > value:
            raise over_limit(None, name, value=value, actual=actual)
