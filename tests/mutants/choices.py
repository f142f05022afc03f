"""What breaks several choices."""

from collections.abc import Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsValue, Heard, Ignores, Mutant
from mutants.edits import Value, chunkwise, each_choice, set_member


def _two(body: Value) -> Value:
    return body | {"choices": [*body["choices"], *({**choice, "index": 1} for choice in body["choices"])]}


def _copies(body: Value) -> Value:
    first = body["choices"][0]
    return body | {"choices": [{**first, "index": choice["index"]} for choice in body["choices"]]}


def _without_last(body: Value) -> Value:
    return body | {"choices": body["choices"][:-1]}


def _other_words(body: Value) -> Value:
    for choice in body["choices"][1:]:
        choice["message"]["content"] += "!"
    return body


class _Crosses(Mutant):
    says = "puts a delta to the next choice"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for choice in chunk["choices"]:
            if choice.get("delta", {}).get("content") and not heard.notes.get("has_crossed"):
                heard.notes["has_crossed"] = True
                choice["index"] = (choice["index"] + 1) % 3
        yield chunk


def _without_finish_of_last(chunk: Value, _: int) -> Iterable[Value]:
    return [] if any(c["index"] == 2 and c["finish_reason"] for c in chunk["choices"]) else [chunk]


MUTANTS: Mutants = {
    "choices.one": (
        EditsValue("always gives two", _two),
        EditsValue("counts from one", each_choice(lambda choice: choice | {"index": choice["index"] + 1})),
    ),
    "choices.indices": (
        Ignores(("n",)),
        EditsValue("has index 0 for all", each_choice(set_member("index", 0))),
        EditsValue("loses the last", _without_last),
    ),
    "choices.streamed": (
        Ignores(("n",)),
        EditsChunks("has index 0 for all", chunkwise(each_choice(set_member("index", 0)))),
        EditsChunks("does not finish the last", _without_finish_of_last),
    ),
    "choices.completions": (Ignores(("n",)), EditsValue("has index 0 for all", each_choice(set_member("index", 0)))),
    "choices.greedy_same": (EditsValue("samples all but the first", _other_words), _Crosses()),
    "choices.own_text": (_Crosses(),),
    "choices.drawn_each": (EditsValue("copies the first", _copies),),
}
