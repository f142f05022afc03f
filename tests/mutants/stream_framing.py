"""What breaks the bytes of a stream, and the times at which they come."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import AddsAfterStream, Base, EditsFrames, EditsHead, Heard, HoldsStream, Mutant, Said, frame_of
from mutants.edits import each_text


def _each(write: Callable[[bytes], bytes]) -> Callable[[str, int], Iterable[bytes]]:
    """Writes every event so."""
    return lambda data, _: [write(data.encode())]


def _once(write: Callable[[bytes], bytes], at: int = 1) -> Callable[[str, int], Iterable[bytes]]:
    """Writes one event so, and the others right."""
    return lambda data, position: [write(data.encode())] if position == at else frame_of(data)


def _latin(data: bytes) -> bytes:
    return b"data: " + data.replace(b'"content":"', b'"content":"\xe9') + b"\n\n"


def _python(data: bytes) -> bytes:
    return b"data: " + repr(json.loads(data)).encode() + b"\n\n"


class _StaysSilent(Mutant):
    """What stands between two engines and a client often passes events on, and nothing else."""

    says = "sends no heartbeat"
    base: Base = "restless"


class _BeatsLate(_StaysSilent):
    says = "sends what is due in a silence when the silence is over"

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        yield from [b": ping\n", *frame_of(data)] if "words" in data else frame_of(data)


class _BeatsOtherwise(_StaysSilent):
    says = "sends another comment, and a blank line"

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        yield from [*frame_of(data), b": alive\n\n"]


class _BeatsFirst(_StaysSilent):
    says = "sends a heartbeat before the first event"

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        yield from frame_of(data) if position else [b": ping\n", *frame_of(data)]


class _LosesTheThird(Mutant):
    """Only the third stream is hurt: the one whose client reads slowly."""

    says = "loses text when its client reads slowly"

    def __init__(self) -> None:
        self._num_streams = 0

    def hear(self, heard: Heard) -> Heard | Said:
        self._num_streams += 1
        heard.notes["is_hurt"] = self._num_streams == 3
        return heard

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        return [] if heard.notes["is_hurt"] and position == 1 else [chunk]


class _ReadsOnce(Mutant):
    """What one read brings is taken for the whole body."""

    says = "takes the first segment of a request for all of it"

    def hear(self, heard: Heard) -> Heard | Said:
        if heard.num_reads > 1:
            return Said(400, b'{"error":{"message":"no JSON","type":"invalid_request_error","param":null,"code":null}}')
        return heard


def _cut_text(text: str) -> str:
    return text.splitlines()[0] if text.splitlines() else text


class _CutsText(Mutant):
    says = "ends a text at its first line separator"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        yield each_text(_cut_text)(chunk)


def _raw_separators(data: str, _: int) -> Iterable[bytes]:
    if data == "[DONE]":
        return frame_of(data)
    return frame_of(json.dumps(json.loads(data), ensure_ascii=False))


def _split_at_separators(data: str, _: int) -> Iterable[bytes]:
    if data == "[DONE]":
        return frame_of(data)
    lines = json.dumps(json.loads(data), ensure_ascii=False).splitlines()
    return [b"".join(b"data: " + line.encode() + b"\n\n" for line in lines)]


def _with_header(name: str, value: str) -> Callable[[Heard, int, dict[str, str]], tuple[int, dict[str, str]]]:
    return lambda _, status, headers: (status, {**headers, name: value})


def _without_header(name: str) -> Callable[[Heard, int, dict[str, str]], tuple[int, dict[str, str]]]:
    return lambda _, status, headers: (status, {key: value for key, value in headers.items() if key.lower() != name})


MUTANTS: Mutants = {
    "stream.utf8": (EditsFrames("writes Latin-1", _once(_latin)),),
    "stream.json": (
        EditsFrames("writes Python, not JSON", _once(_python)),
        EditsFrames("sends a bare word as heartbeat", _once(lambda data: b"data: ping\n\ndata: " + data + b"\n\n")),
        EditsFrames("sends an event without data", _once(lambda data: b"data:\n\ndata: " + data + b"\n\n")),
    ),
    "stream.whole_events": (AddsAfterStream("is cut inside its last event", b'data: {"choices":[]}\n'),),
    "stream.data_only": (
        EditsFrames("names its events", _each(lambda data: b"event: message\ndata: " + data + b"\n\n")),
        EditsFrames("sends named events as heartbeat", _once(lambda d: b"event: ping\n\ndata: " + d + b"\n\n")),
        EditsFrames("numbers its events", _each(lambda data: b"id: 1\ndata: " + data + b"\n\n")),
    ),
    "stream.no_byte_order_mark": (
        EditsFrames("begins with a mark", _once(lambda data: b"\xef\xbb\xbfdata: " + data + b"\n\n", at=0)),
    ),
    "stream.line_feeds": (EditsFrames("ends lines as HTTP does", _each(lambda d: b"data: " + d + b"\r\n\r\n")),),
    "stream.no_nul": (EditsFrames("sends NUL as heartbeat", _once(lambda d: b":\x00\ndata: " + d + b"\n\n")),),
    "stream.one_space": (EditsFrames("saves the space", _each(lambda data: b"data:" + data + b"\n\n")),),
    "stream.one_line": (
        EditsFrames(
            "writes JSON in two lines",
            _once(lambda data: b"data: " + data.replace(b",", b",\ndata: ", 1) + b"\n\n"),
        ),
    ),
    "stream.comments_between": (
        EditsFrames("beats inside an event", _once(lambda data: b"data: " + data + b"\n: ping\n\n")),
    ),
    "stream.comments_alone": (
        EditsFrames("ends heartbeats with a blank line", _once(lambda d: b": ping\n\ndata: " + d + b"\n\n")),
    ),
    "stream.no_empty_events": (
        EditsFrames("ends events with two blank lines", _each(lambda data: b"data: " + data + b"\n\n\n")),
    ),
    "stream.separators_kept": (EditsFrames("splits JSON at separators", _split_at_separators), _CutsText()),
    "stream.separators_escaped": (EditsFrames("writes separators as they are", _raw_separators),),
    "stream.headers": (
        EditsHead("lets proxies hold it back", _without_header("x-accel-buffering")),
        EditsHead("lets caches keep it", _with_header("cache-control", "max-age=60")),
        EditsHead("says that it is compressed", _with_header("content-encoding", "identity")),
    ),
    "stream.read_bytewise": (_LosesTheThird(),),
    "stream.sent_bytewise": (_ReadsOnce(),),
    "stream.over_time": (HoldsStream(),),
    "stream.heartbeat": (_StaysSilent(), _BeatsLate(), _BeatsOtherwise(), _BeatsFirst()),
}
