"""JSON as text: whether a text is one JSON value, and a string as JSON. Without recursion, whatever the depth."""

import re

from msgspec.json import encode

_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)|(?P<mark>[\[\]{},:]))"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _AFTER = range(6)


def is_number(text: str) -> bool:
    """Whether `text` is a JSON number and nothing else."""
    return _NUMBER.fullmatch(text) is not None


def quote(text: str) -> str:
    """Returns `text` as a JSON string. Half of a surrogate pair becomes U+FFFD."""
    return encode(_SURROGATE.sub("\ufffd", text)).decode()


def escape(text: str) -> str:
    """Returns `text` as it stands between the quotes of a JSON string."""
    return quote(text)[1:-1]


def is_json(text: str) -> bool:
    """Whether `text` is exactly one JSON value, blanks around it allowed (RFC 8259)."""
    text = text.strip(" \t\r\n")
    stack: list[str] = []
    state, at = _VALUE, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return False
        at = token.end()
        following = _follow(state, token, stack)
        if following is None:
            return False
        state = following
        if state == _AFTER and not stack:
            return at == len(text)
    return False


def _follow(state: int, token: re.Match[str], stack: list[str]) -> int | None:
    """Returns what may come after `token`, None when it may not stand here."""
    mark = token["mark"]
    if mark is None:
        if state in (_KEY, _KEY_OR_END):
            return _COLON if token["string"] is not None else None
        return _AFTER if state in (_VALUE, _VALUE_OR_END) else None
    if mark in "[{":
        if state not in (_VALUE, _VALUE_OR_END):
            return None
        stack.append(mark)
        return _VALUE_OR_END if mark == "[" else _KEY_OR_END
    if mark in "]}":
        opened, empty = ("[", _VALUE_OR_END) if mark == "]" else ("{", _KEY_OR_END)
        if not stack or stack[-1] != opened or state not in (empty, _AFTER):
            return None
        stack.pop()
        return _AFTER
    if mark == ":":
        return _VALUE if state == _COLON else None
    if state != _AFTER or not stack:
        return None
    return _VALUE if stack[-1] == "[" else _KEY
