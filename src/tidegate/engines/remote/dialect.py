"""What differs between remote engines, as ports: how a request is written, how an output is read, how facts are asked.

A dialect is pure: bytes and structs. Its adapter never retries and never loosens: what an engine cannot do exactly is
refused in `check`, before anything is sent.
"""

from dataclasses import dataclass
from typing import Protocol

import msgspec

from tidegate.engines.remote.ask import Ask
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest


@dataclass(frozen=True, slots=True)
class Order:
    """One POST of JSON. `is_stream`: the answer is an event stream, otherwise one body.

    `headers` are what `hop_headers` says.
    """

    path: str
    body: bytes
    is_stream: bool = True
    headers: tuple[tuple[str, str], ...] = ()


class Piece(msgspec.Struct):
    """What one event adds to one choice. `is_last`: nothing of use follows a piece with `finish`.

    `num_cached_tokens` is None where this event does not say it, `queue_s` 0 where nobody knows. Other members are as
    in `TokenDelta`.
    """

    token_ids: list[int] = []
    finish: EngineFinish | None = None
    stop_token: int | None = None
    logprobs: list[TokenLogprob] | None = None
    prompt_logprobs: list[TokenLogprob | None] | None = None
    num_cached_tokens: int | None = None
    error: str | None = None
    is_last: bool = False
    queue_s: float = 0.0


class OutputReader(Protocol):
    """The output of one choice, event by event, or its whole body."""

    def feed(self, data: bytes) -> Piece | None:
        """Returns what an event adds; None for nothing. Raises UnreadableAnswer."""
        ...


class Dialect(Protocol):
    """How an engine, as it introduced itself, is spoken to."""

    def check(self, request: InferenceRequest) -> None:
        """Raises UnsupportedParameter for what this engine would not do exactly."""
        ...

    def order(self, request: InferenceRequest, choice: int, remote_id: str) -> Order:
        """Returns the request of one choice. `remote_id` names it in the engine."""
        ...

    def reader(self, request: InferenceRequest, choice: int) -> OutputReader:
        """Returns what reads the answer to that order."""
        ...

    def abort_order(self, remote_id: str) -> Order | None:
        """Returns what ends one request in the engine; None where closing its connection is all there is."""
        ...


@dataclass(frozen=True, slots=True)
class Recognition:
    """Who answers. `identity` are the names and values that must stay while the server runs, for people too.

    `boot` changes with each start of the engine's process; None where it does not tell.
    """

    identity: tuple[tuple[str, str], ...]
    boot: str | None = None


@dataclass(frozen=True, slots=True)
class Introduction:
    """What an engine said of itself, and how to speak to it. `notes` are what an operator should know."""

    recognition: Recognition
    model: ModelInfo
    dialect: Dialect
    notes: tuple[str, ...] = ()


class RemoteKind(Protocol):
    """A kind of engine that is reached over HTTP."""

    @property
    def health_path(self) -> str:
        """GET answers 200 while the engine is alive."""
        ...

    async def recognise(self, ask: Ask) -> Recognition:
        """Asks who answers. Raises EngineAway and EngineUnfit."""
        ...

    async def introduce(self, ask: Ask) -> Introduction:
        """Asks for everything, and tries what cannot be asked. Raises EngineAway and EngineUnfit."""
        ...
