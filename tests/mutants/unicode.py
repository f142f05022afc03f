"""What breaks text beyond ASCII."""

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsRequest, EditsValue, Heard, Mutant, Said
from mutants.edits import Value, chunkwise, each_text

_MARKS = "\u200d\u200e\u200f\ufe0f"


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _replaced(text: str) -> str:
    """As what is written in two code units, each taken for a character."""
    return "".join(one if ord(one) < 0x10000 else "\ufffd\ufffd" for one in text)


def _without_marks(text: str) -> str:
    return "".join(one for one in text if one not in _MARKS)


def _unified(text: str) -> str:
    """Compatibility forms are made alike, as by NFKC: U+2070E becomes another ideograph."""
    return text.replace("\U0002070e", "\ufffd")


def _halved(text: str) -> list[str]:
    """Parts of a text as a reader of bytes decodes them, which cuts a character."""
    data = text.encode()
    cut = next((i for i, one in enumerate(data) if one >= 0x80), 0) + 1
    return [data[:cut].decode("utf-8", "replace"), data[cut:].decode("utf-8", "replace")]


def _cut_deltas(chunk: Value, _: int) -> Iterable[Value]:
    choice = next(iter(chunk["choices"]), None)
    content = choice and choice["delta"].get("content")
    if not content or content.isascii():
        return [chunk]
    return [each_text(lambda _, part=part: part)(chunk) for part in _halved(content)]


def _composed_prompt(body: Value) -> Value:
    return body | {"prompt": _composed(body["prompt"])}


def _bmp_prompt(body: Value) -> Value:
    return body | {"prompt": _replaced(body["prompt"])}


class _ReadsNoEscapes(Mutant):
    """Pairs of escapes are read as two characters, and neither exists."""

    says = "does not join escaped halves of a character"

    def hear(self, heard: Heard) -> Heard | Said:
        if b"\\u" not in heard.body:
            return heard
        return heard.with_json(json.loads(heard.body.replace(b"\\ud83d\\udfe2", b"\\ufffd\\ufffd")))


class _WritesByHand(Mutant):
    says = "escapes quotes and backslashes, and nothing else"

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        for escape, raw in ((b"\\t", b"\t"), (b"\\u001b", b"\x1b"), (b"\\u0007", b"\x07")):
            body = body.replace(escape, raw)
        return body


class _EndsAtBadBytes(Mutant):
    says = "ends the text at the first byte that is no UTF-8"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return each_text(lambda text: text.partition("\ufffd")[0])(value)


MUTANTS: Mutants = {
    "unicode.emoji": (
        EditsValue("takes code units for characters", each_text(_replaced)),
        EditsValue("drops joiners", each_text(_without_marks)),
        EditsChunks("cuts characters between deltas", _cut_deltas),
    ),
    "unicode.combining": (
        EditsValue("composes characters", each_text(_composed)),
        EditsChunks("cuts characters between deltas", _cut_deltas),
    ),
    "unicode.ideographs": (EditsValue("knows two bytes of a character", each_text(_unified)),),
    "unicode.right_to_left": (EditsValue("drops marks of direction", each_text(_without_marks)),),
    "unicode.split_tokens": (EditsChunks("cuts characters between deltas", _cut_deltas),),
    "unicode.cut_at_end": (
        EditsChunks("drops it in streams", chunkwise(each_text(lambda text: text.replace("\ufffd", "")))),
        EditsValue("writes one for each byte", each_text(lambda text: text.replace("\ufffd", "\ufffd\ufffd"))),
    ),
    "unicode.not_utf8": (_EndsAtBadBytes(),),
    "unicode.prompt": (
        EditsRequest("composes characters of the prompt", _composed_prompt),
        EditsRequest("takes code units for characters", _bmp_prompt),
    ),
    "unicode.controls": (
        _WritesByHand(),
        EditsValue("drops control characters", each_text(lambda text: "".join(c for c in text if c >= " "))),
    ),
    "unicode.nul": (
        EditsRequest("ends texts at a NUL", lambda body: body | {"prompt": body["prompt"].partition("\0")[0]}),
        EditsChunks("ends deltas at a NUL", chunkwise(each_text(lambda text: text.partition("\0")[0]))),
    ),
    "unicode.escaped_request": (_ReadsNoEscapes(),),
}
