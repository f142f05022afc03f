"""Frames on the socket between server and engine: a length, then one msgpack message.

Decides where a frame begins and ends, and how long one may be. A frame is an unsigned 32-bit little-endian length and
that many bytes of payload; a payload is one message of `messages.py`, as an array (https://msgpack.org). Does not
know: sockets, connections, which message may come when (that is `session.py`).
"""

import msgspec

from tidegate.engine.messages import Command, Report

HEADER_BYTES = 4
MAX_FRAME_BYTES = 64 * 1024 * 1024
"""The longest payload either side accepts. The longest honest one is a prompt of a few million tokens."""

_ENCODER = msgspec.msgpack.Encoder()
_COMMANDS: "msgspec.msgpack.Decoder[Command]" = msgspec.msgpack.Decoder(Command)
_REPORTS: "msgspec.msgpack.Decoder[Report]" = msgspec.msgpack.Decoder(Report)


class FramingError(Exception):
    """The peer broke the protocol. Nothing that follows on this connection can be trusted."""


class LimitError(FramingError):
    """A frame is longer than the bound. `frames` are the payloads that were complete before it."""

    def __init__(self, num_bytes: int, max_bytes: int, frames: list[memoryview] | None = None) -> None:
        super().__init__(f"a frame of {num_bytes} bytes, at most {max_bytes} are allowed")
        self.num_bytes = num_bytes
        self.max_bytes = max_bytes
        self.frames = frames or []


def encode_frame(message: Command | Report) -> bytes:
    """Returns the message as one frame. Raises LimitError when it is too long."""
    return frame(_ENCODER.encode(message))


def frame(payload: bytes) -> bytes:
    """Returns a payload with its length before it. Raises LimitError when it is too long."""
    if len(payload) > MAX_FRAME_BYTES:
        raise LimitError(len(payload), MAX_FRAME_BYTES)
    return len(payload).to_bytes(HEADER_BYTES, "little") + payload


def decode_command(payload: bytes | memoryview) -> Command:
    """Returns the server's message in `payload`. Raises FramingError when it is none."""
    try:
        return _COMMANDS.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FramingError(f"not a command: {error}") from error


def decode_report(payload: bytes | memoryview) -> Report:
    """Returns the engine's message in `payload`. Raises FramingError when it is none."""
    try:
        return _REPORTS.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FramingError(f"not a report: {error}") from error


class FrameDecoder:
    """Bytes in, payloads out. Every split of the input gives the same payloads, in linear time."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._pending = bytearray()
        self._num_wanted = HEADER_BYTES
        self._error: LimitError | None = None

    @property
    def num_pending_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._pending)

    def feed(self, data: bytes) -> list[memoryview]:
        """Returns the payloads that `data` completes, in order; they share its memory.

        Raises LimitError as soon as a length above the bound is read, and on every call after that.
        """
        if self._error is not None:
            raise LimitError(self._error.num_bytes, self._error.max_bytes)
        if self._pending:
            self._pending += data
            if len(self._pending) < self._num_wanted:
                return []
            data = bytes(self._pending)
            self._pending = bytearray()
        frames: list[memoryview] = []
        at = self._split(memoryview(data), frames)
        self._pending += data[at:]
        return frames

    def _split(self, view: memoryview, frames: list[memoryview]) -> int:
        """Cuts whole frames off `view`; returns where the first incomplete one begins."""
        at = 0
        while len(view) - at >= HEADER_BYTES:
            num_bytes = int.from_bytes(view[at : at + HEADER_BYTES], "little")
            if num_bytes > self._max_frame_bytes:
                self._error = LimitError(num_bytes, self._max_frame_bytes, frames)
                raise self._error
            end = at + HEADER_BYTES + num_bytes
            if end > len(view):
                self._num_wanted = end - at
                return at
            frames.append(view[at + HEADER_BYTES : end])
            at = end
        self._num_wanted = HEADER_BYTES
        return at
