"""From a msgspec error text to an error of ours, with the path of the field that is wrong.

msgspec says what it expected and, unless the fault is at the top, where: "... - at `$.messages[2].content`". Values of
mappings have the path `$.x[...]` and their keys "`key` in `$.x`"; both become the mapping's own path. The text may
quote the caller's input, so nothing of it is passed on but what is understood here, and quotations are cut.
"""

import re

from tidegate.contract.quote import quote
from tidegate.errors import InvalidJson, InvalidRequest, InvalidValue, MissingField

_WITH_PATH = re.compile(r"(?P<what>.*) - at (?:`key` in )?`\$(?P<path>[^`]*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `(?P<wanted>[^`]*)`(?:, got `(?P<got>[^`]*)`)?")
_WRONG_CHOICE = re.compile(r"Invalid (?:enum )?value (?P<value>.*)", re.DOTALL)
_RANGE = re.compile(r"Expected `(?:int|float)` (?P<relation><=|>=|<|>) (?P<bound>\S+)")
_LENGTH = re.compile(r"Expected `(?P<kind>str|array|object)` of length (?P<relation><=|>=|) ?(?P<bound>\d+)")
_PATTERN = re.compile(r"Expected `str` matching regex")
_OFFSET = re.compile(r"\(byte (\d+)\)")
_NOT_A_NUMBER = re.compile(rb"-?(?:NaN|Infinity)\b")
_MEMBER_BEFORE = re.compile(rb'"([A-Za-z_]\w{0,63})"\s*:\s*\Z')

_TYPE_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_GOT_WORDS = _TYPE_WORDS | {"float": "a number with a fraction or an exponent", "bool": "a boolean"}
_UNIT_WORDS = {"str": "characters", "array": "entries", "object": "entries"}
_RELATION_WORDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "": "exactly"}


def json_fault(text: str, body: bytes) -> InvalidRequest:
    """Returns the error for a body that is not JSON; `text` is msgspec's, which names a byte offset, or ours.

    NaN and Infinity, which some clients write, are laid to the field before them: InvalidValue.
    """
    reason = text.removeprefix("JSON is malformed: ")
    if reason == "Input data was truncated":
        reason = "it ends too early, or holds a lone surrogate escape"
    if (offset := _OFFSET.search(reason)) and (found := _not_a_number(body, int(offset[1]))):
        field, word = found
        return InvalidValue(f"{field}: {word} is not a number in JSON", param=field)
    return InvalidJson(f"the body is not valid JSON: {reason}")


def _not_a_number(body: bytes, offset: int) -> tuple[str, str] | None:
    """Returns the member whose value at `offset` is NaN or Infinity, and that word."""
    start = max(offset - 1, 0) if body[offset - 1 : offset] == b"-" else offset
    word = _NOT_A_NUMBER.match(body, start)
    member = _MEMBER_BEFORE.search(body[max(start - 128, 0) : start])
    return (member[1].decode(), word[0].decode()) if word and member else None


def value_fault(text: str) -> InvalidRequest:
    """Returns the error for a body that is JSON of the wrong shape; `text` is msgspec's."""
    path = ""
    if located := _WITH_PATH.fullmatch(text):
        text, path = located["what"], located["path"]
    param = path.removesuffix("[...]").replace("[...]", "").removeprefix(".")
    if missing := _MISSING.fullmatch(text):
        param = _join(param, missing["field"])
        return MissingField(f"{param}: this field is required", param=param)
    if unknown := _UNKNOWN.fullmatch(text):
        param = _join(param, unknown["field"][:64])
        return InvalidValue(f"{quote(param)}: no such field", param=param)
    if not param:
        return InvalidJson(f"the body must be a JSON object; {_what_is_wrong(text)}")
    return InvalidValue(f"{param}: {_what_is_wrong(text)}", param=param)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _what_is_wrong(text: str) -> str:
    if wrong := _RANGE.fullmatch(text):
        return f"must be {_RELATION_WORDS[wrong['relation']]} {wrong['bound'].removesuffix('.0')}"
    if wrong := _LENGTH.fullmatch(text):
        return f"must have {_RELATION_WORDS[wrong['relation']]} {wrong['bound']} {_UNIT_WORDS[wrong['kind']]}"
    if _PATTERN.match(text):
        return "is too long, or has characters that are not allowed here"
    if wrong := _WRONG_TYPE.fullmatch(text):
        got = _GOT_WORDS.get(wrong["got"], wrong["got"])
        return f"must be {_alternatives(wrong['wanted'])}" + (f", not {got}" if got else "")
    if wrong := _WRONG_CHOICE.fullmatch(text):
        value = wrong["value"]
        is_text = len(value) >= 2 and value[0] == value[-1] == "'"
        return f"{quote(value[1:-1] if is_text else value)} is not one of the allowed values"
    if text.startswith("Number out of range"):
        return "the number is out of range"
    return "the value is not valid"


def _alternatives(wanted: str) -> str:
    words = [_TYPE_WORDS.get(name, name) for name in wanted.split(" | ") if name != "null"]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1] if words else "null"
