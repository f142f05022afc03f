"""Whether a text is the beginning of some JSON text: how an answer that the token budget cut is judged.

Decides by completing: a text is a beginning when one of a few endings makes it JSON. So what it accepts is right by
construction; numbers, literals, names and escapes may be cut anywhere.
"""

from tidegate.conformance.wire.json_text import NOT_JSON, read_written_json

_NAME = '"\\u0001 a name that no answer holds"'
_AFTER = ("", "null", ":null", f"{_NAME}:null", f",{_NAME}:null", "0", ".0")
_LITERALS = tuple(word[cut:] for word in ("true", "false", "null") for cut in range(1, len(word)))
_ESCAPES = ("", "n", "0041", "041", "41", "1")
_BLANKS = " \t\r\n"


def is_json_beginning(text: str) -> bool:
    """Returns whether more characters could make a JSON text of it. A whole JSON text is one too, and so is none."""
    if not text.strip(_BLANKS):
        return True
    closers, is_in_string = _open_parts(text)
    if is_in_string:
        endings = [f'{escape}"{after}' for escape in _ESCAPES for after in ("", ":null")]
    else:
        endings = [*_AFTER, *_LITERALS, *(literal + ":null" for literal in _LITERALS)]
    return any(_is_json(text + ending + closers) for ending in endings)


def _open_parts(text: str) -> tuple[str, bool]:
    """Returns the brackets that close what is open, and whether the text ends inside a string."""
    closers: list[str] = []
    is_in_string = is_escaped = False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif is_in_string:
            is_escaped = character == "\\"
            is_in_string = character != '"'
        elif character == '"':
            is_in_string = True
        elif character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]" and closers:
            closers.pop()
    return "".join(reversed(closers)), is_in_string


def _is_json(text: str) -> bool:
    return read_written_json(text.encode("utf-8", "replace").decode()) is not NOT_JSON
