"""What breaks the grammar of a stream."""

import json
from collections.abc import Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import AddsAfterStream, EditsChunks, EditsFrames, EditsHead, Ignores, Mutant, frame_of
from mutants.edits import Value, chunkwise, each_choice, each_delta, each_text, set_member, without

_DONE = b"data: [DONE]\n\n"


def _finish_of(chunk: Value) -> Any:
    return any(choice.get("finish_reason") for choice in chunk.get("choices", []))


def _is_usage(chunk: Value) -> bool:
    return chunk.get("choices") == []


def _own_id(chunk: Value, position: int) -> Iterable[Value]:
    return [chunk | {"id": f"{chunk['id']}-{position}"}]


def _no_id_for_usage(chunk: Value, _: int) -> Iterable[Value]:
    return [chunk | {"id": ""} if _is_usage(chunk) else chunk]


def _later_created(chunk: Value, position: int) -> Iterable[Value]:
    return [chunk | {"created": chunk["created"] + position}]


def _no_model(chunk: Value) -> Value:
    return chunk | {"model": ""} if _is_usage(chunk) else chunk


def _opening_again(chunk: Value, position: int) -> Iterable[Value]:
    return [chunk] if position else [chunk, chunk]


class _FinishWithLastText(Mutant):
    """The finish_reason rides on the last text, which is how many servers do it, but our contract does not."""

    says = "finishes with the last text"

    def __init__(self) -> None:
        self._held: Value | None = None

    def chunk(self, heard: Any, chunk: Any, position: int) -> Iterable[Any]:
        if _finish_of(chunk) and self._held is not None:
            held, self._held = self._held, None
            yield each_choice(lambda choice: choice | {"finish_reason": chunk["choices"][0]["finish_reason"]})(held)
            return
        if self._held is not None:
            yield self._held
        self._held = chunk


def _text_after_finish(chunk: Value, _: int) -> Iterable[Value]:
    if not _finish_of(chunk):
        return [chunk]
    more = each_choice(lambda choice: choice | {"delta": {"content": "."}, "finish_reason": None})(chunk)
    return [chunk, more]


def _usage_first(chunk: Value, position: int) -> Iterable[Value]:
    if position:
        return [] if _is_usage(chunk) else [chunk]
    return [chunk | {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}, chunk]


def _usage_on_finish(chunk: Value, _: int) -> Iterable[Value]:
    if _is_usage(chunk):
        return []
    return [chunk | {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}]


def _null_left_out(chunk: Value) -> Value:
    return without(chunk, "usage") if chunk.get("usage", 0) is None else chunk


def _zeros_for_null(chunk: Value) -> Value:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return chunk | {"usage": zeros} if chunk.get("usage", 0) is None else chunk


def _no_done(data: str, _: int) -> Iterable[bytes]:
    return [] if data == "[DONE]" else frame_of(data)


def _empty_delta_after_role(chunk: Value, position: int) -> Iterable[Value]:
    if position:
        return [chunk]
    return [chunk, each_delta(lambda _: {"content": ""})(chunk)]


def _done_after_error(data: str, _: int) -> Iterable[bytes]:
    return [*frame_of(data), _DONE] if "error" in json.loads(data) else frame_of(data)


def _stop_after_error(chunk: Value, _: int) -> Iterable[Value]:
    if "error" not in chunk:
        return [chunk]
    return [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def _flat_error(chunk: Value) -> Value:
    return dict(chunk.get("error", chunk))


def _without_blanks(text: str) -> str:
    return text.replace(" ", "")


def _streams_more(chunk: Value) -> Value:
    usage = chunk.get("usage")
    return chunk | {"usage": usage | {"completion_tokens": usage["completion_tokens"] + 1}} if usage else chunk


def _twice(data: str, _: int) -> Iterable[bytes]:
    return [*frame_of(data), *(frame_of(data) if data == "[DONE]" else [])]


MUTANTS: Mutants = {
    "stream.media_type": (
        EditsHead("says JSON", lambda _, status, headers: (status, {**headers, "content-type": "application/json"})),
    ),
    "stream.chunk_object": (
        EditsChunks("says chat.completion", chunkwise(set_member("object", "chat.completion"))),
        EditsChunks("leaves created out", chunkwise(lambda chunk: without(chunk, "created"))),
        EditsChunks("leaves index out", chunkwise(each_choice(lambda choice: without(choice, "index")))),
    ),
    "stream.finish_member": (
        EditsChunks(
            "leaves null finish_reason out",
            chunkwise(each_choice(lambda c: c if c["finish_reason"] else without(c, "finish_reason"))),
        ),
        EditsChunks(
            "finishes with abort",
            chunkwise(each_choice(lambda c: c | {"finish_reason": c["finish_reason"] and "abort"})),
        ),
    ),
    "stream.one_id": (
        EditsChunks("makes an id for each chunk", _own_id),
        EditsChunks("has no id on the usage chunk", _no_id_for_usage),
    ),
    "stream.one_created": (EditsChunks("takes the time for each chunk", _later_created),),
    "stream.one_model": (EditsChunks("has no model on the usage chunk", chunkwise(_no_model)),),
    "stream.role_first": (EditsChunks("tells no role", chunkwise(each_delta(lambda delta: without(delta, "role")))),),
    "stream.opening": (
        EditsChunks("opens twice", _opening_again),
        EditsChunks("tells the role in each delta", chunkwise(each_delta(set_member("role", "assistant")))),
    ),
    "stream.finish_once": (
        EditsChunks("never finishes", lambda chunk, _: [] if _finish_of(chunk) else [chunk]),
        EditsChunks("finishes twice", lambda chunk, _: [chunk, chunk] if _finish_of(chunk) else [chunk]),
        EditsChunks("goes on after the finish", _text_after_finish),
    ),
    "stream.finish_delta": (_FinishWithLastText(),),
    "stream.usage_last": (
        EditsChunks("tells usage first", _usage_first),
        EditsChunks("tells usage on every chunk instead", _usage_on_finish),
        Ignores(("stream_options",)),
    ),
    "stream.usage_null": (
        EditsChunks("leaves null usage out", chunkwise(_null_left_out)),
        EditsChunks("says zeros", chunkwise(_zeros_for_null)),
    ),
    "stream.no_usage": (
        EditsChunks("tells usage on every chunk", _usage_on_finish),
        EditsChunks(
            "sends a chunk without choices", lambda chunk, i: [chunk] if i else [chunk | {"choices": []}, chunk]
        ),
    ),
    "stream.done": (
        EditsFrames("does not end with [DONE]", _no_done),
        EditsFrames("says [DONE] twice", _twice),
        AddsAfterStream("sends an event after [DONE]", b'data: {"choices":[]}\n\n'),
    ),
    "stream.nothing_after_done": (AddsAfterStream("sends a heartbeat after [DONE]", b": ping\n"),),
    "stream.informs": (EditsChunks("sends an empty delta", _empty_delta_after_role),),
    "stream.error_event": (
        EditsFrames("says [DONE] after an error", _done_after_error),
        EditsChunks("finishes as if nothing had failed", _stop_after_error),
        EditsChunks("puts the error flat", chunkwise(_flat_error)),
        EditsChunks("ends without a word", lambda chunk, _: [] if "error" in chunk else [chunk]),
    ),
    "stream.text_as_whole": (
        EditsChunks("loses blanks in deltas", chunkwise(each_text(_without_blanks))),
        EditsChunks(
            "streams stop for length",
            chunkwise(each_choice(lambda c: c | {"finish_reason": c["finish_reason"] and "stop"})),
        ),
    ),
    "stream.usage_as_whole": (EditsChunks("counts one more in streams", chunkwise(_streams_more)),),
    "stream.completions_chunk": (
        EditsChunks("says text_completion.chunk", chunkwise(set_member("object", "text_completion.chunk"))),
        EditsChunks(
            "leaves text out of the last", chunkwise(each_choice(lambda c: c if c["text"] else without(c, "text")))
        ),
        EditsChunks("makes an id for each chunk", _own_id),
    ),
    "stream.completions_end": (
        EditsFrames("does not end with [DONE]", _no_done),
        EditsChunks("never finishes", lambda chunk, _: [] if _finish_of(chunk) else [chunk]),
    ),
    "stream.completions_as_whole": (EditsChunks("loses blanks in deltas", chunkwise(each_text(_without_blanks))),),
}
