"""How deep a JSON text nests, found before it is parsed: a parser would recurse.

The text is reduced to its quotes and brackets, and their running sum is taken in blocks of a fixed size: linear in
time, bounded in memory. For a text that is not JSON the result holds for the part before its first fault, which is all
that a parser will look at.
"""

import numpy as np

from tidegate.contract.bounds import over_limit

_QUOTE = 2
_MARKS = bytes.maketrans(b'"[{]}', bytes((_QUOTE, 1, 1, 255, 255)))
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'"[{]}')
_BLOCK_BYTES = 1 << 18


def json_depth(text: bytes) -> int:
    """Returns the depth of the deepest array or object in `text`; 0 for a bare value. Strings are seen as strings."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_MARKS, _NOT_MARKS)
    depth = deepest = num_quotes = 0
    for start in range(0, len(marks), _BLOCK_BYTES):
        block = np.frombuffer(marks, np.int8, min(_BLOCK_BYTES, len(marks) - start), start)
        is_quote = block == _QUOTE
        quotes_before = np.cumsum(is_quote, dtype=np.int64) + num_quotes
        steps = np.where(is_quote | (quotes_before & 1 == 1), 0, block)
        depths = np.cumsum(steps, dtype=np.int64) + depth
        deepest = max(deepest, int(depths.max()))
        depth, num_quotes = int(depths[-1]), int(quotes_before[-1])
    return deepest


def check_json_depth(text: bytes, max_depth: int) -> None:
    """Raises InvalidValue, with the limit `json_depth`, when `text` nests deeper than `max_depth`."""
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return
    depth = json_depth(text)
    if depth > max_depth:
        raise over_limit(None, "json_depth", value=max_depth, actual=depth)
