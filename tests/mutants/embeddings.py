"""What breaks embeddings."""

import base64
import struct
from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsRequest, EditsValue, Heard, Mutant, Said, on_base

_ANSWER = (
    b'{"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.0]}], "model": "embedder",'
    b' "usage": {"prompt_tokens": 1, "total_tokens": 1}}'
)
_FAILED = b'{"error": {"message": "?", "type": "server_error", "param": null, "code": null}}'
_REFUSED = (
    "empty_text",
    "empty_list",
    "no_input",
    "number",
    "object",
    "mixture",
    "encoding",
    "no_dimensions",
)


def _edits(says: str, edit: Callable[[dict[str, Any]], Any]) -> Mutant:
    """A mutant that changes the answer's object in place."""

    def apply(value: Any) -> Any:
        edit(value)
        return value

    return on_base("embeddings", EditsValue(says, apply))


def _edits_rows(says: str, edit: Callable[[dict[str, Any]], Any]) -> Mutant:
    return _edits(says, lambda value: [edit(row) for row in value["data"]])


def _asks(says: str, **members: Any) -> Mutant:
    """A mutant that reads some members as others; None leaves them out."""

    def apply(body: Any) -> Any:
        return {name: part for name, part in (body | members).items() if part is not None}

    return on_base("embeddings", EditsRequest(says, apply))


def _answers(says: str, answer: Callable[[Any], Said | None]) -> Mutant:
    def apply(heard: Heard) -> Said | None:
        return answer(heard.json)

    return on_base("embeddings", Answers(says, apply))


def _swap_bytes(row: dict[str, Any]) -> None:
    if isinstance(row["embedding"], str):
        data = base64.b64decode(row["embedding"])
        numbers = struct.unpack(f"<{len(data) // 4}f", data)
        row["embedding"] = base64.b64encode(struct.pack(f">{len(numbers)}f", *numbers)).decode()


def _halve(row: dict[str, Any]) -> None:
    if isinstance(row["embedding"], str):
        row["embedding"] = base64.b64encode(base64.b64decode(row["embedding"])[:-2]).decode()


def _swap_rows(value: dict[str, Any]) -> None:
    rows = value["data"]
    if len(rows) == 2:
        rows[0]["embedding"], rows[1]["embedding"] = rows[1]["embedding"], rows[0]["embedding"]


class _Drifts(Mutant):
    base = "embeddings"
    says = "has another embedding each time"

    def __init__(self) -> None:
        self._num_answers = 0

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        self._num_answers += 1
        for row in value["data"]:
            row["embedding"][0] += self._num_answers
        return value


_IGNORES_BASE64 = _asks("ignores encoding_format", encoding_format=None)
_ONE_FOR_ALL = _edits_rows("has one embedding for all texts", lambda row: row.update(embedding=[0.5, 0.5]))
_LOSES_LAST = _edits("loses the last row", lambda value: value["data"].pop())
_COUNTS_NOT = _edits_rows("numbers every row 0", lambda row: row.update(index=0))
_LISTS_FAIL = _answers("fails on lists", lambda body: Said(500, _FAILED) if isinstance(body["input"], list) else None)

MUTANTS: Mutants = {
    "embeddings.object": (
        _edits("has no object", lambda value: value.pop("object")),
        _edits("names no model", lambda value: value.pop("model")),
        _edits_rows("has rows without index", lambda row: row.pop("index")),
        _edits_rows("has rows without object", lambda row: row.pop("object")),
        _edits_rows("has numbers as text", lambda row: row.update(embedding=[str(n) for n in row["embedding"]])),
    ),
    "embeddings.usage": (
        _edits("tells no usage", lambda value: value.pop("usage")),
        _edits("counts nothing", lambda value: value.update(usage={"prompt_tokens": 0, "total_tokens": 0})),
        _edits("tells no total", lambda value: value["usage"].pop("total_tokens")),
    ),
    "embeddings.usage_adds_up": (
        _edits("counts a list once more", lambda value: value["usage"].update(prompt_tokens=7)),
    ),
    "embeddings.base64": (_IGNORES_BASE64, _edits_rows("writes half precision", _halve)),
    "embeddings.encodings_agree": (_edits_rows("writes base64 with the high byte first", _swap_bytes),),
    "embeddings.float_is_default": (_asks("writes base64 always", encoding_format="base64"),),
    "embeddings.list_in_order": (_edits("mixes up rows", _swap_rows), _COUNTS_NOT, _LOSES_LAST),
    "embeddings.list_of_one": (_edits("counts rows from 1", lambda value: value["data"][0].update(index=1)),),
    "embeddings.many": (_LOSES_LAST, _COUNTS_NOT),
    "embeddings.scripts": (_LISTS_FAIL,),
    "embeddings.inputs_differ": (_ONE_FOR_ALL,),
    "embeddings.numbers_are_sound": (
        _edits_rows("answers zeros", lambda row: row.update(embedding=[0.0] * 4)),
        _edits_rows("writes NaN", lambda row: row.update(embedding=[float("nan")])),
        _edits_rows("overflows", lambda row: row.update(embedding=[1e308, 1e308])),
    ),
    "embeddings.repeats": (_Drifts(),),
    "embeddings.token_ids": (_edits("takes ids for texts", lambda value: value["data"].extend(value["data"])),),
    "embeddings.token_lists": (_LOSES_LAST, _LISTS_FAIL),
    "embeddings.dimensions": (_asks("ignores dimensions", dimensions=None),),
    "embeddings.unknown_member": (
        _answers("fails on unknown members", lambda body: Said(500, _FAILED) if "colour" in body else None),
    ),
    **{
        f"embeddings.refuses_{name}": (_answers("takes any input", lambda body: Said(200, _ANSWER)),)
        for name in _REFUSED
    },
}
