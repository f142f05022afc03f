"""What server processes that share one gate say to it, and what it answers. Frames are those of `engine/framing.py`.

Asked: Enter, Started, Leave, ClaimSlot, ReleaseSlot. Answered: Admitted, Refused, SlotGiven, SlotRefused. Blamed goes
either way: what one process holds against a request is told to all. Each Enter is answered once unless a Leave crosses
the answer; what a connection holds at its end is given back. Instants are of the monotonic clock, which all processes
of one machine share.
"""

from typing import TypeVar

import msgspec

from tidegate import errors
from tidegate.engine.framing import FramingError, frame
from tidegate.errors import CapacityFault, LimitFact, RateFacts, RateLimited, ServeError
from tidegate.lifecycle.poison import Blame
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.ticket import Ticket

MAX_FRAME_BYTES = 64 * 1024
"""No message is longer: tickets hold numbers and short names."""


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """A ServeError as data. `kind` is the name of its class."""

    kind: str
    message: str
    param: str | None = None
    limit: LimitFact | None = None
    retry_after_s: int | None = None
    rate: RateFacts | None = None


class Enter(msgspec.Struct, frozen=True, array_like=True, tag=1):
    ticket: Ticket


class Started(msgspec.Struct, frozen=True, array_like=True, tag=2):
    ticket_id: str


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=3):
    ticket_id: str
    num_tokens: int


class ClaimSlot(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """`number` is the asking process's own name for the slot."""

    number: int
    key_id: str
    quotas: Quotas


class ReleaseSlot(msgspec.Struct, frozen=True, array_like=True, tag=5):
    number: int


class Blamed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """`model` is the first name of what the engines serve that a request may have killed."""

    model: str
    blame: Blame


class Admitted(msgspec.Struct, frozen=True, array_like=True, tag=10):
    ticket_id: str
    rate: RateFacts | None = None


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=11):
    ticket_id: str
    refusal: Refusal


class SlotGiven(msgspec.Struct, frozen=True, array_like=True, tag=12):
    number: int


class SlotRefused(msgspec.Struct, frozen=True, array_like=True, tag=13):
    number: int
    refusal: Refusal


Question = Enter | Started | Leave | ClaimSlot | ReleaseSlot | Blamed
Answer = Admitted | Refused | SlotGiven | SlotRefused | Blamed

_M = TypeVar("_M")
_ENCODER = msgspec.msgpack.Encoder()
_QUESTIONS: "msgspec.msgpack.Decoder[Question]" = msgspec.msgpack.Decoder(Question)
_ANSWERS: "msgspec.msgpack.Decoder[Answer]" = msgspec.msgpack.Decoder(Answer)
_KINDS: dict[str, type[ServeError]] = {
    cls.__name__: cls
    for cls in (
        *(errors.RateLimited, errors.QueueFull, errors.NoCapacity, errors.EngineUnavailable, errors.ServerDraining),
        *(errors.DeadlineUnreachable, errors.DeadlineExceeded),
    )
}
"""What a gate refuses with. Anything else is a fault of ours, and crosses as InternalError."""


def encode_message(message: Question | Answer) -> bytes:
    """Returns the message as one frame."""
    return frame(_ENCODER.encode(message))


def decode_question(payload: bytes | memoryview) -> Question:
    """Raises FramingError when the payload is no question."""
    return _decode(_QUESTIONS, payload)


def decode_answer(payload: bytes | memoryview) -> Answer:
    """Raises FramingError when the payload is no answer."""
    return _decode(_ANSWERS, payload)


def _decode(decoder: "msgspec.msgpack.Decoder[_M]", payload: bytes | memoryview) -> _M:
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FramingError(f"not a message of the gate: {error}") from error


def describe_refusal(error: ServeError) -> Refusal:
    """Returns an error as data."""
    return Refusal(
        kind=type(error).__name__,
        message=error.message,
        param=error.param,
        limit=error.limit,
        retry_after_s=error.retry_after_s if isinstance(error, CapacityFault) else None,
        rate=error.rate if isinstance(error, RateLimited) else None,
    )


def make_error(refusal: Refusal) -> ServeError:
    """Returns the error that a refusal describes."""
    kind = _KINDS.get(refusal.kind, errors.InternalError)
    if issubclass(kind, RateLimited):
        return kind(refusal.message, retry_after_s=refusal.retry_after_s or 1, limit=refusal.limit, rate=refusal.rate)
    if issubclass(kind, CapacityFault):
        return kind(refusal.message, retry_after_s=refusal.retry_after_s or 1, limit=refusal.limit)
    return kind(refusal.message, param=refusal.param, limit=refusal.limit)
