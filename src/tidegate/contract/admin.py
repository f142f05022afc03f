"""Bodies and answers of the admin listener's POST routes. Bodies are optional; unknown members are refused."""

from enum import Enum
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_members
from tidegate.contract.decode_fault import value_fault
from tidegate.contract.quote import quote
from tidegate.errors import UnknownParameter

MAX_BODY_BYTES = 4096
MAX_DRAIN_S = 86_400.0
MAX_WAIT_S = 600.0
MAX_READY_S = 3600.0
MAX_NAME_CHARACTERS = 512
MAX_URL_CHARACTERS = 2048
_LIMITS = Limits(json_depth=8)

Seconds = Annotated[float, Meta(ge=0, le=MAX_DRAIN_S)]


class NoFields(msgspec.Struct, frozen=True):
    """The body of an act that takes no argument."""


class DrainBody(msgspec.Struct, frozen=True):
    """`timeout_s`: how long running requests may go on, from now; the setting where it is absent."""

    timeout_s: Seconds | None = None


class WaitBody(msgspec.Struct, frozen=True):
    """`wait_s`: how long the answer may wait for the act to be done, such as an engine to be ready; absent: not."""

    wait_s: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] | None = None


class AddBody(msgspec.Struct, frozen=True):
    """`model`: whose engine is added; may be absent where there is one. `url`: where the engine is, for kinds that run
    elsewhere. `wait_s`: how long the answer may wait for it to be ready; absent: it does not wait.
    """

    model: Annotated[str, Meta(max_length=MAX_NAME_CHARACTERS)] | None = None
    url: Annotated[str, Meta(max_length=MAX_URL_CHARACTERS)] | None = None
    wait_s: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] | None = None


class EngineAct(Enum):
    """What can be done to one engine by its name: the last part of the route."""

    DRAIN = "drain"
    """No more requests; what it works on goes on."""
    EJECT = "eject"
    """No more requests; what it works on moves where nothing was sent, and fails otherwise."""
    RETIRE = "retire"
    """No more requests; what it works on goes on, and then the engine ends."""
    RETURN = "return"
    """The end of any of these."""
    RESTART = "restart"
    FLUSH = "flush"
    """Drops its prefix cache."""


class EngineTold(msgspec.Struct, frozen=True):
    """`state` is what the engine is now; `requests` are still with it. Of `eject`: `taken` were taken from it."""

    engine: str
    state: str
    requests: int
    taken: int | None = None


class RollBody(msgspec.Struct, frozen=True):
    """`model`: whose engines are restarted one after the other; absent: those of all. `ready_s`: how long a new one may
    take to be ready; absent: 600. `wait_s`: how long the answer may wait for the end; absent: not.
    """

    model: Annotated[str, Meta(max_length=MAX_NAME_CHARACTERS)] | None = None
    ready_s: Annotated[float, Meta(gt=0, le=MAX_READY_S)] | None = None
    wait_s: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] | None = None


class RollTold(msgspec.Struct, frozen=True):
    """`state` is a word of `engines/pool/roll_states.py`, or `none` where there was no roll. `engine` is the one whose
    turn it is. `done` were restarted, `left` were not, or not yet. `reason`: why a roll was aborted.
    """

    state: str
    engine: str | None
    done: list[str]
    left: list[str]
    reason: str | None


class DrainBegun(msgspec.Struct, frozen=True):
    """What happens from now on. The process ends with status 0 when the last request has, or the time is over."""

    status: str
    timeout_s: float
    was_draining: bool


class RequestAborted(msgspec.Struct, frozen=True):
    """`status` is `aborted`, or `complete` where all output was there already and only its reader lags."""

    id: str
    status: str


class CacheDropped(msgspec.Struct, frozen=True):
    """`freed_blocks` were cached, held by no request, and are free now."""

    freed_blocks: int
    epoch: int


class EngineRestarted(msgspec.Struct, frozen=True):
    """`status` is `ready`, under `epoch`; or `restarting`, when `epoch` is the one that is coming."""

    status: str
    epoch: int


_Body = TypeVar("_Body", bound=msgspec.Struct)


def decode_admin_body(body: bytes, kind: type[_Body]) -> _Body:
    """Reads an optional body of at most `MAX_BODY_BYTES`. Raises InvalidJson, InvalidValue or UnknownParameter."""
    if not body.strip():
        return kind()
    for name in decode_members(body, _LIMITS):
        if name not in kind.__struct_fields__:
            raise UnknownParameter(f"{quote(name)} is not a field of this request", param=name[:64])
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise value_fault(str(error)) from None
