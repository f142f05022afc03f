"""AnswerReader: bytes of one response's body in any fragmentation; instants of its text, counts and its end out. Pure.

Reads streams leniently: CRLF, comments, other fields, chunks without choices. Whether a server keeps the API's small
print is for `tidegate conform` to judge. Does not know: HTTP, what was asked, why a body ended.
"""

from typing import Any

import msgspec

from tidegate.loadtest.sample import Ending

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_WHOLE_BYTES = 1024 * 1024
"""Of a body that is no stream; of it only an error's message is wanted."""
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_DETAIL_CHARS = 300


class _Function(msgspec.Struct):
    arguments: str | None = None
    name: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Chunk)


def describe_error(body: bytes) -> str:
    """Returns what an error body says, in one short line: its message where it has one, else its beginning."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = body.decode("utf-8", "replace")
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return " ".join(text.split())[:MAX_DETAIL_CHARS]


class AnswerReader:
    """One response. `feed` takes bytes with the instant at which they came; `finish` says that the body is whole."""

    def __init__(self) -> None:
        self.token_at: list[float] = []
        self.texts: list[str] = []
        """Content only: what a next turn gives back, and what a schema is held against."""
        self.finish_reason: str | None = None
        self.usage: _Usage | None = None
        self.fault: tuple[Ending, str] | None = None
        """Why no more is read. The first one stands."""
        self._partial = b""
        self._num_bytes = 0
        self._has_events = False
        self._is_done = False

    @property
    def text(self) -> str:
        """The answer's content so far."""
        return "".join(self.texts)

    def feed(self, data: bytes, at: float) -> None:
        """Takes the next bytes of the body."""
        if self.fault is not None:
            return
        self._num_bytes += len(data)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line[5:].strip(), at)
        limit = MAX_EVENT_BYTES if self._has_events else MAX_WHOLE_BYTES
        if self._num_bytes > MAX_BODY_BYTES or len(self._partial) > limit:
            self._fail(Ending.TOO_LONG, f"after {self._num_bytes} bytes")

    def finish(self) -> tuple[Ending, str]:
        """The body is whole; returns how the answer ended, and what there is to say about it."""
        if self.fault is not None:
            return self.fault
        if self._is_done or self.finish_reason is not None:
            return Ending.DONE, ""
        if self._has_events:
            return Ending.CUT, f"the body ended after {len(self.token_at)} pieces, without finish_reason and [DONE]"
        if self._partial.lstrip().startswith(b"{"):
            return Ending.NOT_STREAMED, describe_error(self._partial)
        return Ending.GARBAGE, f"no event came; the body begins {self._partial[:80]!r}"

    def _take(self, data: bytes, at: float) -> None:
        self._has_events = True
        if data == b"[DONE]":
            self._is_done = True
            return
        if not data or self.fault is not None:
            return
        try:
            chunk = _DECODER.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._fail(Ending.GARBAGE, f"{error}: {data[:80]!r}")
            return
        if chunk.error is not None:
            self._fail(Ending.STREAM_ERROR, describe_error(msgspec.json.encode({"error": chunk.error})))
            return
        if chunk.usage is not None:
            self.usage = chunk.usage
        has_text = False
        for choice in chunk.choices:
            has_text |= self._take_choice(choice)
        if has_text:
            self.token_at.append(at)

    def _take_choice(self, choice: _Choice) -> bool:
        """Returns whether the choice brought text of any kind."""
        if choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
        delta = choice.delta or _Delta()
        if content := delta.content or choice.text:
            self.texts.append(content)
            return True
        return bool(delta.reasoning_content or delta.reasoning or delta.tool_calls)

    def _fail(self, ending: Ending, detail: str) -> None:
        self.fault = self.fault or (ending, detail[:MAX_DETAIL_CHARS])
