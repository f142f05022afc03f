"""Every message that crosses the process boundary. A message only ever gains optional fields at its end.

Server to engine: AddRequest, AbortRequest, HoldRequest, Ping, FlushCache.
Engine to server: EngineReady, StepOutputs, EngineFault, Pong, CacheFlushed, Farewell.

After `AddRequest` each choice of the request ends in exactly one `TokenDelta` with `finish`, refusal and abort
included; a request that the engine cannot take ends its every choice at once with `EngineFinish.FAILED`. An abort of
something unknown or finished is ignored.
"""

import msgspec

from tidegate.engine.gauges import EngineGauges
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest

PROTOCOL = 1


class AddRequest(msgspec.Struct, frozen=True, array_like=True, tag=1):
    request: InferenceRequest


class AbortRequest(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Ends one choice, or all of them when `choice` is None."""

    request_id: str
    choice: int | None = None


class HoldRequest(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Stops (`held`) or resumes scheduling of a request whose reader is behind."""

    request_id: str
    held: bool


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=4):
    nonce: int


class FlushCache(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Drops every cached block that no sequence holds. Answered by one CacheFlushed with the same nonce."""

    nonce: int


class EngineReady(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The first message on every connection, once the model is loaded. `life` names this start of the engine's process
    as no other start is named, the same for whoever is connected; None where the engine does not tell.
    """

    epoch: int
    model: ModelInfo
    protocol: int = PROTOCOL
    life: str | None = None


class StepOutputs(msgspec.Struct, array_like=True, tag=11):
    """Everything that one step has for this connection, and the gauges after it."""

    epoch: int
    outputs: list[TokenDelta]
    gauges: EngineGauges


class EngineFault(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The engine cannot go on and will exit."""

    message: str


class Pong(msgspec.Struct, frozen=True, array_like=True, tag=13):
    nonce: int
    gauges: EngineGauges


class CacheFlushed(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """`num_blocks` were dropped, and are free now."""

    nonce: int
    num_blocks: int


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The last message of an engine that was told to end: what is open is lost, and no request is to blame."""


Command = AddRequest | AbortRequest | HoldRequest | Ping | FlushCache
Report = EngineReady | StepOutputs | EngineFault | Pong | CacheFlushed | Farewell
