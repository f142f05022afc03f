"""Mutants: servers that are right but for one thing. Each breaks one behaviour of a right server, as a real one might.

`Mutant` breaks nothing; its methods see every part of an exchange on its way, and a mutant overrides one of them, or is
made of one function by the classes below. A mutant lives as long as its server: it may remember earlier exchanges.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Headers = list[tuple[str, str]]
Base = Literal["scripted", "simulated", "keyed", "restless", "embeddings"]
"""Engine of the right server behind a mutant; `keyed` is scripted, every route needs a key, and the admin listener its
credential; `restless` is scripted, and its streams have a heartbeat every 0.4 s; `embeddings` is a small server of the
tests.
"""


@dataclass
class Heard:
    """A request as it came. `notes` are a mutant's own, for this exchange. `num_reads`: how many reads brought it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    notes: dict[str, Any] = field(default_factory=dict)
    num_reads: int = 1

    @property
    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def is_stream(self) -> bool:
        value = self.json
        return isinstance(value, dict) and value.get("stream") is True

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def with_json(self, value: Any) -> "Heard":
        """Returns the same request with another body."""
        body = json.dumps(value).encode()
        headers = [(k, v) for k, v in self.headers if k.lower() not in ("content-length", "transfer-encoding")]
        return Heard(self.method, self.target, [*headers, ("Content-Length", str(len(body)))], body, self.notes)


@dataclass
class Said:
    """A whole answer that the server behind was not asked for."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=lambda: [("Content-Type", "application/json")])


class Mutant:
    """Breaks nothing. `base`: the engine of the right server behind it. `is_admin`: it stands before the admin
    listener, not the public one. `holds_stream`: events are sent together, at the end. `goes_on_alone`: a client that
    leaves is not noticed: the server behind goes on until its end.
    """

    base: Base = "scripted"
    is_admin: bool = False
    says: str
    holds_stream: bool = False
    goes_on_alone: bool = False

    def hear(self, heard: Heard) -> Heard | Said:
        """Returns the request that goes on, or the answer."""
        return heard

    def head(self, heard: Heard, status: int, headers: Headers) -> tuple[int, Headers]:
        """Returns status and headers; Content-Length and Transfer-Encoding are made anew unless they are added here."""
        return status, headers

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        """Returns the body of an answer that is no event stream."""
        try:
            value = json.loads(body)
        except ValueError:
            return body
        return json.dumps(self.value(heard, status, value), ensure_ascii=False).encode()

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        """Returns the JSON of an answer that is no event stream."""
        return value

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        """Yields the bytes for one event of a stream; `[DONE]` is one too."""
        if data == "[DONE]":
            yield b"data: [DONE]\n\n"
            return
        for chunk in self.chunk(heard, json.loads(data), position):
            yield b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        """Yields the chunks that take the place of one."""
        yield chunk

    def ending(self, heard: Heard) -> Iterable[bytes]:
        """Yields what follows the last event."""
        return ()


@dataclass
class EditsRequest(Mutant):
    """`edit` gets the JSON of a request with a body, and returns another: a field ignored, or changed."""

    says: str
    edit: Callable[[Any], Any]

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        return heard.with_json(self.edit(value)) if isinstance(value, dict) else heard


@dataclass
class Ignores(Mutant):
    """The server takes no notice of some fields of the body."""

    fields: tuple[str, ...]

    @property
    def says(self) -> str:
        return f"ignores {', '.join(self.fields)}"

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        if not isinstance(value, dict):
            return heard
        return heard.with_json({name: part for name, part in value.items() if name not in self.fields})


@dataclass
class Answers(Mutant):
    """`answer` gets a request and returns what is said to it, or None: then the server behind is asked."""

    says: str
    answer: Callable[[Heard], Said | None]

    def hear(self, heard: Heard) -> Heard | Said:
        return self.answer(heard) or heard


@dataclass
class EditsHead(Mutant):
    """`edit` gets the status and the headers, by name as they came, and returns others."""

    says: str
    edit: Callable[[Heard, int, dict[str, str]], tuple[int, dict[str, str]]]

    def head(self, heard: Heard, status: int, headers: Headers) -> tuple[int, Headers]:
        status, edited = self.edit(heard, status, dict(headers))
        return status, list(edited.items())


@dataclass
class EditsValue(Mutant):
    """`edit` changes the JSON of answers that are no streams: of those with `status`, or of all where it is None."""

    says: str
    edit: Callable[[Any], Any]
    status: int | None = 200

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return self.edit(value) if self.status in (None, status) else value


@dataclass
class EditsErrors(Mutant):
    """`edit` changes the JSON of answers whose status is 400 or more."""

    says: str
    edit: Callable[[Any], Any]

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return self.edit(value) if status >= 400 else value


@dataclass
class EditsChunks(Mutant):
    """`edit` gets each chunk of a stream and its position, and returns the chunks in its place."""

    says: str
    edit: Callable[[Any, int], Iterable[Any]]

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        return self.edit(chunk, position)


@dataclass
class EditsFrames(Mutant):
    """`edit` gets the data of each event (`[DONE]` is one) and its position, and returns the bytes in its place."""

    says: str
    edit: Callable[[str, int], Iterable[bytes]]

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        return self.edit(data, position)


@dataclass
class AddsAfterStream(Mutant):
    """Something follows the last event."""

    says: str
    data: bytes

    def ending(self, heard: Heard) -> Iterable[bytes]:
        yield self.data


@dataclass
class HoldsStream(Mutant):
    says: str = "sends the events of a stream together, at its end"
    holds_stream: bool = True


@dataclass
class GoesOnAlone(Mutant):
    says: str = "does not notice that a client has left"
    goes_on_alone: bool = True


def frame_of(data: str) -> Iterator[bytes]:
    """Yields an event as a right server writes it."""
    yield b"data: " + data.encode() + b"\n\n"


def on_base(base: Base, mutant: Mutant) -> Mutant:
    """Returns the mutant in front of another right server."""
    mutant.base = base
    return mutant
