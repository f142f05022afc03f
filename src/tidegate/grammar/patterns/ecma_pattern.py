"""ECMA-262 patterns, as JSON Schema has them, in the words of the backend's regular expressions.

The two languages agree on most texts and silently disagree on some: what `.`, `\\s` and `\\w` match, and what `[`, `&&`
and `--` mean inside a class. Each of these is spelled out, so that a pattern means here what it means to a validator.
Look-around and back references have no regular language, and word borders no place in one: they are refused.
"""

import re

from tidegate.grammar.refusal import unsupported

_SPACE = r"\t\n\x0b\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
}
_SAME = frozenset("tnrfpP")
_TOKEN = re.compile(
    r"\\c[A-Za-z]|\\u\{[0-9A-Fa-f]+\}|\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}"
    r"|\\x[0-9A-Fa-f]{2}|\\[pP]\{[^}]*\}|\\.|\(\?<?[=!]|.",
    re.DOTALL,
)


def translate(pattern: str, path: str) -> str:
    """Returns the pattern for the backend. Raises Refused for what it cannot say."""
    written: list[str] = []
    is_in_class = False
    for token in _TOKEN.findall(pattern):
        if is_in_class:
            is_in_class = token != "]"
            written.append(_in_class(token, written[-1], path))
        elif token == "[":
            is_in_class = True
            written.append(token)
        else:
            written.append(_outside(token, path))
    return _repair_classes("".join(written))


def _outside(token: str, path: str) -> str:
    if token == ".":
        return r"[^\n\r\u2028\u2029]"
    if len(token) > 2 and token.startswith("(?"):
        raise unsupported("look-around in a pattern", path)
    return _escaped(token, path) if token.startswith("\\") else token


def _in_class(token: str, before: str, path: str) -> str:
    if token == r"\b":
        return r"\x08"
    if token.startswith("\\"):
        return _escaped(token, path)
    if token in "[&~" or (token == "-" and before == "-"):
        return "\\" + token
    return "".join("\\" + c if c == "[" else c for c in token)


def _escaped(token: str, path: str) -> str:
    kind = token[1]
    if kind in _CLASSES:
        return _CLASSES[kind]
    if kind == "c" and len(token) == 3:
        return f"\\x{ord(token[2].upper()) - 64:02x}"
    if kind == "u" and len(token) > 2:
        return _code_point(token)
    if kind in {"0", "v"}:
        return r"\x00" if kind == "0" else r"\x0b"
    if kind.isalnum() and kind not in _SAME and len(token) == 2:
        raise unsupported(f"{token} in a pattern", path)
    return "/" if token == "\\/" else token


def _code_point(token: str) -> str:
    if token.startswith("\\u{"):
        return f"\\x{{{token[3:-1]}}}"
    units = [int(part, 16) for part in token.split("\\u")[1:]]
    code = units[0] if len(units) == 1 else 0x10000 + ((units[0] - 0xD800) << 10) + (units[1] - 0xDC00)
    return f"\\x{{{code:x}}}"


def _repair_classes(pattern: str) -> str:
    """`[^]` is any character in ECMA-262; `[]` is none, and stays an error."""
    return pattern.replace("[^]", r"[\x{0}-\x{10ffff}]")


def other_than(texts: list[str]) -> str:
    """Returns a pattern for every string except these, by their prefix tree."""
    tree: dict[str, object] = {}
    for text in texts:
        node = tree
        for character in text:
            node = node.setdefault(character, {})  # type: ignore[assignment]
        node[""] = {}
    return f"^{_other(tree)}$"


def _other(node: dict[str, object]) -> str:
    branches = [] if "" in node else [""]
    children = {key: child for key, child in node.items() if key}
    for key, child in children.items():
        assert isinstance(child, dict)
        branches.append(_code_point(f"\\u{{{ord(key):x}}}") + _other(child))
    first = "[^" + "".join(f"\\x{{{ord(key):x}}}" for key in children) + "]" if children else "(?s:.)"
    branches.append(f"{first}(?s:.)*")
    return "(?:" + "|".join(branches) + ")"
