"""Route: one open request: its sink, its exchanges, and which of its choices have not ended."""

from typing import NamedTuple

from tidegate.engine.port import DeltaSink
from tidegate.engines.remote.carrier import Run
from tidegate.engines.remote.dialect import Piece
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest


class Share(NamedTuple):
    """A request's part in the accounts: choices by what they do, and blocks."""

    waiting: int = 0
    running: int = 0
    held: int = 0
    constrained: int = 0
    blocks: int = 0


NO_SHARE = Share()


class Route:
    """`heard_at`: since when its next output is waited for. `epoch`: the one that it was submitted under."""

    __slots__ = (
        "epoch",
        "has_output",
        "heard_at",
        "is_held",
        "num_tokens",
        "open_choices",
        "request",
        "runs",
        "share",
        "sink",
    )

    def __init__(self, sink: DeltaSink, request: InferenceRequest, epoch: int, now: float) -> None:
        self.sink = sink
        self.request = request
        self.epoch = epoch
        self.heard_at = now
        self.is_held = False
        self.has_output = False
        self.open_choices = set(range(request.num_choices))
        self.num_tokens = [0] * request.num_choices
        self.runs: dict[int, Run] = {}
        self.share = NO_SHARE
        """What it adds to the engine's accounts; `accounts.py` keeps it."""

    def delta_of(self, choice: int, piece: Piece) -> TokenDelta | None:
        """Returns what the sink is told of a piece; None for more tokens than the request may have.

        A request for no tokens has asked for one, which is dropped here.
        """
        budget = self.request.stop.max_tokens
        if budget == 0:
            _drop_token(piece)
        token_ids = piece.token_ids
        self.num_tokens[choice] += len(token_ids)
        if self.num_tokens[choice] > budget:
            return None
        is_first, self.has_output = not self.has_output, True
        return TokenDelta(
            self.request.request_id,
            choice,
            token_ids,
            piece.finish,
            logprobs=piece.logprobs,
            stop_token=piece.stop_token,
            num_prompt_tokens=self.request.num_prompt_tokens if is_first else 0,
            num_cached_tokens=(piece.num_cached_tokens or 0) if choice == 0 else 0,
            prompt_logprobs=piece.prompt_logprobs,
            error=piece.error,
            queue_s=piece.queue_s if is_first else 0.0,
        )


def _drop_token(piece: Piece) -> None:
    piece.token_ids, piece.stop_token = [], None
    piece.logprobs = [] if piece.logprobs is not None else None
    if piece.finish not in (None, EngineFinish.ABORTED, EngineFinish.FAILED):
        piece.finish = EngineFinish.LENGTH
