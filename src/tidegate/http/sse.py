"""Bytes of an event stream (WHATWG HTML, section 9.2), beside the data frames that writers build themselves."""

from tidegate.contract import headers as names

PING = b": ping\n"
"""A heartbeat: one comment line. A blank line after it would make some readers dispatch an empty event."""

COMMENT = b":\n"

STREAM_HEADERS = (
    (names.CONTENT_TYPE, names.EVENT_STREAM_TYPE),
    (names.CACHE_CONTROL, "no-cache"),
    (names.ACCEL_BUFFERING, "no"),
)

# Line breaks to some readers, although not to the standard: harmless in JSON once escaped.
_ESCAPES = (("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\u0085", "\\u0085"))


def data_frame(json_line: bytes) -> bytes:
    """Returns one event whose data is `json_line`, JSON text without line feeds."""
    text = json_line.decode()
    if not text.isascii():
        for char, escape in _ESCAPES:
            text = text.replace(char, escape)
    return b"data: " + text.encode() + b"\n\n"
