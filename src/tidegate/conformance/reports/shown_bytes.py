"""Bytes as a report shows them: at most so many, three quarters from the beginning, one from the end. Pure."""

import base64

from tidegate.conformance.reports.document import Shown


def show_bytes(data: bytes, max_bytes: int) -> Shown:
    """Returns the bytes, at most `max_bytes` of them; as text where they are UTF-8."""
    return _cut(data, b"", len(data), max_bytes)


def shorten(shown: Shown, max_bytes: int) -> Shown:
    """Returns at most `max_bytes` of what is shown."""
    if num_shown(shown) <= max_bytes:
        return shown
    read = base64.b64decode if shown.encoding == "base64" else str.encode
    return _cut(read(shown.start), read(shown.end), shown.num_bytes, max_bytes)


def num_shown(shown: Shown) -> int:
    """Returns how many bytes are shown."""
    return shown.num_bytes - shown.num_cut


def _cut(start: bytes, end: bytes, num_bytes: int, max_bytes: int) -> Shown:
    if len(start) + len(end) > max_bytes:
        num_end = max_bytes // 4
        last = end or start
        start, end = _whole_start(start[: max_bytes - num_end]), _whole_end(last[max(len(last) - num_end, 0) :])
    num_cut = num_bytes - len(start) - len(end)
    try:
        return Shown(encoding="utf-8", start=start.decode(), end=end.decode(), num_bytes=num_bytes, num_cut=num_cut)
    except UnicodeDecodeError:
        pair = (base64.b64encode(part).decode() for part in (start, end))
        return Shown(encoding="base64", start=next(pair), end=next(pair), num_bytes=num_bytes, num_cut=num_cut)


def _whole_start(data: bytes) -> bytes:
    """Without the beginning of a character that the cut has parted."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80 or byte >= 0xF8:
            return data
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if length == back else data[:-back]
    return data


def _whole_end(data: bytes) -> bytes:
    """Without the end of a character that the cut has parted."""
    for start in range(min(4, len(data))):
        if not 0x80 <= data[start] < 0xC0:
            return data[start:]
    return data if len(data) > 3 else b""
