"""Fingerprints: which requests are the same, and the name of the operation that they ask for.

Two bodies have one fingerprint when they are equal as JSON values: white space, escapes, the order of members and
members that a later one of the same name replaces do not matter. Numbers are compared by their exact value, whatever
their spelling: `1`, `1.0` and `1e0` are one number, `0.1` and `0.10000000000000001` are two. Headers are no part of
it, so a retry may carry another deadline or request id.
"""

import hashlib
import re

import msgspec

MAX_KEY_CHARACTERS = 255

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_MAX_PLAIN_DIGITS = 400
"""Whole numbers up to this length are written out; every double fits."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')


def read_key(value: str) -> str | None:
    """Returns the key that a header's value holds, None when it is malformed.

    A key is 1 to 255 visible ASCII characters, bare or as a quoted string in which a backslash goes before a quote or
    another backslash. HTTP joins repeated headers with a comma and a space, and a space is not visible: two headers
    are never one key.
    """
    key: str | None = value
    if value.startswith('"'):
        quoted = _QUOTED.fullmatch(value)
        key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted is not None else None
    if key is None or not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        return None
    return key if all("!" <= character <= "~" for character in key) else None


def operation_id(key_id: str, key: str) -> bytes:
    """Returns 32 bytes that name `key` of the caller `key_id`. Neither can be read from it."""
    return _digest(key_id.encode("utf-8", "surrogatepass"), key.encode())


def fingerprint(method: str, route: str, body: bytes) -> bytes | None:
    """Returns 32 bytes that are equal for equal requests; None when the body is not JSON."""
    try:
        canonical = _ENCODER.encode(_DECODER.decode(body))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _fingerprint_as_is(method, route, body)
    return _digest(method.encode(), route.encode(), b"value", canonical)


def _fingerprint_as_is(method: str, route: str, body: bytes) -> bytes | None:
    """For what may be JSON, but holds numbers beyond all bounds or the like: such a body equals only itself."""
    try:
        body.decode()
        _SYNTAX.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _digest(method.encode(), route.encode(), b"bytes", body)


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _exact_number(text: str) -> msgspec.Raw:
    """Returns a spelling that depends only on the number's value. Raises ValueError for absurd exponents."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(text)
    sign, whole, fraction, exponent = found[1], found[2], found[3] or "", int(found[4] or 0)
    digits = (whole + fraction).lstrip("0")
    exponent -= len(fraction)
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    if not stripped:
        return msgspec.Raw(b"0")
    if exponent >= 0 and len(stripped) + exponent <= _MAX_PLAIN_DIGITS:
        return msgspec.Raw(f"{sign}{stripped}{'0' * exponent}".encode())
    return msgspec.Raw(f"{sign}{stripped}e{exponent}".encode())


_DECODER = msgspec.json.Decoder(float_hook=_exact_number)
_ENCODER = msgspec.json.Encoder(order="sorted")
_SYNTAX = msgspec.json.Decoder(msgspec.Raw)
