"""What breaks log-probabilities."""

from collections.abc import Callable, Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsRequest, EditsValue, Heard, Mutant, on_base
from mutants.edits import Value, chunkwise, each_choice, set_member, without


def _entries(edit: Callable[[list[Value]], list[Value]]) -> Callable[[Value], Value]:
    """Edits the list of entries in each choice of a chat answer or chunk."""

    def edited(choice: Value) -> Value:
        logprobs = choice.get("logprobs")
        if not logprobs or "content" not in logprobs:
            return choice
        return choice | {"logprobs": logprobs | {"content": edit(logprobs["content"])}}

    return each_choice(edited)


def _each(edit: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return _entries(lambda entries: [edit(entry) for entry in entries])


def _top(edit: Callable[[list[Value]], list[Value]]) -> Callable[[Value], Value]:
    return _each(lambda entry: entry | {"top_logprobs": edit(entry["top_logprobs"])})


def _lists(edit: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Edits the lists in each choice of a completion or chunk."""
    return each_choice(lambda c: c | {"logprobs": edit(c["logprobs"])} if c.get("logprobs") else c)


def _token_for_bytes(entry: Value) -> Value:
    return entry | {"bytes": list(entry["token"].encode())}


def _scaled(entry: Value) -> Value:
    """As probabilities, not their logarithms."""
    return entry | {"logprob": 0.9, "top_logprobs": [top | {"logprob": 0.9} for top in entry["top_logprobs"]]}


def _all_likely(entry: Value) -> Value:
    return entry | {"top_logprobs": [top | {"logprob": -0.1} for top in entry["top_logprobs"]]}


def _shifted(entries: list[Value]) -> list[Value]:
    """Alternatives are those of the next token."""
    tops = [entry["top_logprobs"] for entry in entries]
    return [entry | {"top_logprobs": top} for entry, top in zip(entries, tops[1:] + tops[:1], strict=True)]


def _less_top(entry: Value) -> Value:
    return entry | {"top_logprobs": entry["top_logprobs"][1:]}


def _marker(entry: Value) -> Value:
    return entry | {"token": entry["token"].replace(" ", "\u0120") + "\u2581"}


def _asks_for_three(body: Value) -> Value:
    return body if body.get("top_logprobs") else body | {"top_logprobs": 3}


def _asks_always(body: Value) -> Value:
    return body | {"logprobs": True}


def _late(heard: Heard, chunk: Value) -> Iterable[Value]:
    """Entries come with the finish, all together."""
    held = heard.notes.setdefault("held", [])
    for choice in chunk["choices"]:
        entries = (choice.get("logprobs") or {}).get("content") or []
        held += entries
        choice["logprobs"] = {"content": held, "refusal": None} if choice["finish_reason"] else None
    return [chunk]


class _EntriesAtTheEnd(Mutant):
    says = "tells all entries with the finish"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        return _late(heard, chunk)


class _Warmed(Mutant):
    says = "tells what is left after the temperature"
    base = "simulated"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        warmth = heard.json.get("temperature") or 1

        def cooled(entry: Value) -> Value:
            return entry | {"logprob": entry["logprob"] / warmth}

        return _top(lambda top: [cooled(one) for one in top])(value)


class _OffsetsAnew(Mutant):
    says = "counts offsets anew in every chunk"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        def anew(logprobs: Value) -> Value:
            first = next(iter(logprobs["text_offset"]), 0)
            return logprobs | {"text_offset": [offset - first for offset in logprobs["text_offset"]]}

        yield _lists(anew)(chunk)


def _member(name: str, edit: Callable[[list[Any]], Any]) -> Callable[[Value], Value]:
    return _lists(lambda logprobs: logprobs | {name: edit(logprobs[name])})


MUTANTS: Mutants = {
    "logprobs.entries": (
        EditsValue("ignores logprobs", each_choice(set_member("logprobs", None))),
        EditsValue("leaves bytes out", _each(lambda entry: without(entry, "bytes"))),
        EditsValue("tells infinity as null", _top(lambda top: [*top[:-1], top[-1] | {"logprob": None}])),
        EditsValue("has no list of alternatives", _each(lambda entry: entry | {"top_logprobs": None})),
    ),
    "logprobs.text": (EditsValue("has no entry for the first token", _entries(lambda entries: entries[1:])),),
    "logprobs.bytes": (EditsValue("tells the vocabulary's spelling", _each(_marker)),),
    "logprobs.every_token": (EditsValue("has two entries for a token", _entries(lambda entries: entries * 2)),),
    "logprobs.top_count": (
        EditsValue("gives one alternative", _top(lambda top: top[:1])),
        EditsValue("gives one more", _top(lambda top: [*top, top[-1] | {"token": "x", "logprob": -9.0}])),
    ),
    "logprobs.top_exact": (
        EditsValue("leaves the chosen token out at one place", _entries(lambda e: [_less_top(e[0]), *e[1:]])),
    ),
    "logprobs.sorted": (
        EditsValue("has them in order of the vocabulary", _top(lambda top: top[::-1])),
        EditsValue("names the chosen one twice", _top(lambda top: [top[0], top[0], *top[1:2]])),
    ),
    "logprobs.range": (
        EditsValue("tells probabilities", _each(_scaled)),
        EditsValue("tells what does not add up", _each(_all_likely)),
    ),
    "logprobs.chosen_on_top": (EditsValue("is off by one place", _entries(_shifted)),),
    "logprobs.top_absent": (on_base("simulated", EditsRequest("always gives three", _asks_for_three)),),
    "logprobs.not_asked": (EditsRequest("always tells them", _asks_always),),
    "logprobs.streamed": (
        EditsChunks("has none in streams", chunkwise(each_choice(set_member("logprobs", None)))),
        EditsChunks("has other numbers", chunkwise(_each(lambda entry: entry | {"logprob": entry["logprob"] - 1}))),
    ),
    "logprobs.with_text": (_EntriesAtTheEnd(),),
    "logprobs.split_characters": (
        EditsValue("has the bytes of U+FFFD", _each(_token_for_bytes)),
        EditsChunks("has the bytes of U+FFFD in streams", chunkwise(_each(_token_for_bytes))),
    ),
    "logprobs.raw": (_Warmed(),),
    "logprobs.lists": (
        EditsValue("ignores logprobs", each_choice(set_member("logprobs", None))),
        EditsValue("has a list too short", _member("text_offset", lambda offsets: offsets[:-1])),
        EditsValue("tells probabilities", _member("token_logprobs", lambda values: [0.9 for _ in values])),
    ),
    "logprobs.tokens_say_text": (
        EditsValue("tells the vocabulary's spelling", _member("tokens", lambda tokens: [f"\u0120{t}" for t in tokens])),
    ),
    "logprobs.offsets": (
        EditsValue("counts tokens", _member("text_offset", lambda offsets: [2 * i for i in range(len(offsets))])),
    ),
    "logprobs.offset_start": (
        EditsValue(
            "counts from the completion on",
            _member("text_offset", lambda offsets: [offset - min(offsets) for offset in offsets]),
        ),
    ),
    "logprobs.maps": (
        EditsValue("has no maps", _member("top_logprobs", lambda _: None)),
        EditsValue("has them as lists", _member("top_logprobs", lambda maps: [list(one.items()) for one in maps])),
    ),
    "logprobs.completions_streamed": (_OffsetsAnew(),),
}
