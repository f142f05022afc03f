"""Bodies as they go over the wire in other forms than as they are. Pure."""

import gzip
import json
from collections.abc import Mapping
from typing import Any


def make_chunks(*, body: Mapping[str, Any], size: int, extension: bytes, trailer: bytes) -> bytes:
    """Returns the JSON in chunks of at most `size` bytes (RFC 9112, section 7.1), each with the extension."""
    data = json.dumps(body).encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    sent = b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces)
    return sent + b"0\r\n" + trailer + b"\r\n"


def make_gzip(*, body: Mapping[str, Any]) -> bytes:
    """Returns the JSON, compressed; the same bytes every time."""
    return gzip.compress(json.dumps(body).encode(), mtime=0)
