"""How deep a JSON text nests, found before it is parsed: a parser would recurse.

The text is reduced to its quotes and brackets, and their running sum is taken, in blocks of a fixed size: linear in
time, bounded in memory, and other threads get their turn between blocks. For a text that is not JSON the result holds
for the part before its first fault, which is all that a parser will look at.
"""

from collections.abc import Iterator

import numpy as np

from tidegate.contract.bounds import over_limit

_QUOTE = 2
_MARKS = bytes.maketrans(b'"[{]}', bytes((_QUOTE, 1, 1, 255, 255)))
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'"[{]}')
BLOCK_BYTES = 1 << 18


def json_depth(text: bytes) -> int:
    """Returns the depth of the deepest array or object in `text`; 0 for a bare value. Strings are seen as strings."""
    depth = deepest = num_quotes = 0
    for part in unescaped_blocks(text):
        marks = part.translate(_MARKS, _NOT_MARKS)
        if not marks:
            continue
        block = np.frombuffer(marks, np.int8)
        is_quote = block == _QUOTE
        quotes_before = np.cumsum(is_quote, dtype=np.int64) + num_quotes
        steps = np.where(is_quote | (quotes_before & 1 == 1), 0, block)
        depths = np.cumsum(steps, dtype=np.int64) + depth
        deepest = max(deepest, int(depths.max()))
        depth, num_quotes = int(depths[-1]), int(quotes_before[-1])
    return deepest


def unescaped_blocks(text: bytes) -> Iterator[bytes]:
    """Yields `text` in blocks, without its escaped quotes and backslashes. No block ends inside an escape."""
    start = 0
    while start < len(text):
        end = start + BLOCK_BYTES
        block = text[start:end]
        if (len(block) - len(block.rstrip(b"\\"))) % 2:
            block += text[end : end + 1]
            end += 1
        start = end
        yield block.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in block else block


def check_json_depth(text: bytes, max_depth: int) -> None:
    """Raises InvalidValue, with the limit `json_depth`, when `text` nests deeper than `max_depth`."""
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return
    depth = json_depth(text)
    if depth > max_depth:
        raise over_limit(None, "json_depth", value=max_depth, actual=depth)
