"""What crosses between a server and an engine actor: batches of commands one way, batches of reports the other.

Decides the bytes. The messages are those of `engine/messages.py`; what that boundary has no word for (one request that
failed, an engine that went away behind an actor that stays) is added here. Ray carries the bytes as they are: nothing
of ours is pickled. A message only ever gains optional fields at its end. Does not know: Ray, sessions, order.
"""

import msgspec

from tidegate.engine.framing import MAX_FRAME_BYTES, FramingError, LimitError
from tidegate.engine.messages import CacheFlushed, Command, EngineReady, Pong, StepOutputs


class WireLimit(msgspec.Struct, frozen=True, array_like=True):
    """See `errors.LimitFact`."""

    name: str
    value: int
    actual: int
    scope: str


class RequestFailed(msgspec.Struct, frozen=True, array_like=True, tag=30):
    """The whole request has ended without an answer. `kind` is a name in `carried_errors.py`."""

    request_id: str
    kind: str
    message: str
    param: str | None = None
    limit: WireLimit | None = None
    retry_after_s: int = 1


class EngineAway(msgspec.Struct, frozen=True, array_like=True, tag=31):
    """The engine in the actor is lost, and everything that was open; it may come back under its next epoch.

    `was_asked`: somebody wanted it to end, and no request is to blame.
    """

    reason: str
    was_asked: bool = False


RayReport = EngineReady | StepOutputs | CacheFlushed | Pong | RequestFailed | EngineAway


class CommandBatch(msgspec.Struct, frozen=True, array_like=True):
    """Commands of one turn of a server. `number` counts a session's batches from 1: each is carried out once."""

    session: str
    number: int
    commands: list[Command]


class RawCommandBatch(msgspec.Struct, frozen=True, array_like=True):
    """The same, with commands that are bytes already."""

    session: str
    number: int
    commands: list[msgspec.Raw]


class EventBatch(msgspec.Struct, array_like=True):
    """Everything that one turn of the engine has for a session.

    `boot` names one start of the actor's process. `number` counts a stream's batches from 1. `acknowledged` is the last
    batch of commands that was carried out. `condition` says why the engine is not ready; None while it is.
    """

    boot: str
    number: int
    acknowledged: int
    reports: list[RayReport]
    condition: str | None = None
    is_draining: bool = False
    has_failed: bool = False
    """The engine was given up: only a person can help."""


_ENCODER = msgspec.msgpack.Encoder()
_COMMANDS: "msgspec.msgpack.Decoder[CommandBatch]" = msgspec.msgpack.Decoder(CommandBatch)
_EVENTS: "msgspec.msgpack.Decoder[EventBatch]" = msgspec.msgpack.Decoder(EventBatch)


def encode_command(command: Command) -> msgspec.Raw:
    """Returns one command as bytes. Raises LimitError when it is longer than a frame may be."""
    encoded = _ENCODER.encode(command)
    if len(encoded) > MAX_FRAME_BYTES:
        raise LimitError(len(encoded), MAX_FRAME_BYTES)
    return msgspec.Raw(encoded)


def encode_commands(session: str, number: int, commands: list[msgspec.Raw]) -> bytes:
    """Returns a batch of commands."""
    return _ENCODER.encode(RawCommandBatch(session, number, commands))


def decode_commands(data: bytes) -> CommandBatch:
    """Returns the batch in `data`. Raises FramingError when it is none."""
    try:
        return _COMMANDS.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FramingError(f"not a batch of commands: {error}") from error


def encode_events(batch: EventBatch) -> bytes:
    """Returns a batch of reports."""
    return _ENCODER.encode(batch)


def decode_events(data: bytes) -> EventBatch:
    """Returns the batch in `data`. Raises FramingError when it is none."""
    try:
        return _EVENTS.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FramingError(f"not a batch of events: {error}") from error
