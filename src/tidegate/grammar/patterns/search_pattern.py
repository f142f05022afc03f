"""A pattern that is searched for, as a regular expression that matches the whole text.

`^` at the beginning and `$` at the end of an alternative tie it down; anywhere else they are refused.
"""

import re

from tidegate.grammar.refusal import unsupported

_TOKEN = re.compile(r"\\(?:x\{[^}]*\}|[pP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def whole_pattern(pattern: str, path: str) -> str:
    """Returns the regular expression; `pattern` is in the backend's words. Raises Refused."""
    depth = 0
    alternatives: list[list[str]] = [[]]
    for token in _TOKEN.findall(pattern):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(token)
    return "|".join(_tied(tokens, path) for tokens in alternatives)


def _tied(tokens: list[str], path: str) -> str:
    head = "" if tokens[:1] == ["^"] else "(?s:.*)"
    tokens = tokens[1:] if not head else tokens
    tail = "" if tokens[-1:] == ["$"] else "(?s:.*)"
    tokens = tokens[:-1] if not tail else tokens
    if "^" in tokens or "$" in tokens:
        raise unsupported("^ or $ in the middle of a pattern", path)
    return f"{head}(?:{''.join(tokens)}){tail}"
