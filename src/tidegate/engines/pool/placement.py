"""Placement: one request in a pool, from its submit to its end, on whichever engine it is; and Attempt, one try of it.

An attempt is the sink that an engine knows. Once the request has been given to another engine, what the earlier one
still says is stale: dropped and counted.
"""

from typing import Protocol

from tidegate.engine.port import DeltaSink
from tidegate.engines.pool.identity import ModelIdentity
from tidegate.engines.pool.outstanding import WorkShare
from tidegate.engines.pool.pool_member import PoolMember
from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest


class Keeper(Protocol):
    """The pool, as its attempts know it."""

    def note_answer(self, member: PoolMember) -> None:
        """The first output of a request came from this engine."""
        ...

    def note_stale(self) -> None:
        """An attempt that counts no more has said something."""
        ...

    def take_failure(self, attempt: "Attempt", error: ServeError) -> None:
        """The attempt has failed: the request moves, or fails."""
        ...

    def forget(self, placement: "Placement") -> None:
        """The request has ended."""
        ...


class Placement:
    """What the pool knows of an open request. `identity`: only engines of this one may answer it; None for any."""

    __slots__ = (
        "aborted_choices",
        "attempt",
        "has_output",
        "hashes",
        "identity",
        "is_aborted",
        "is_held",
        "num_moves",
        "num_unexplained",
        "request",
        "sink",
        "tried",
    )

    def __init__(
        self,
        request: InferenceRequest,
        sink: DeltaSink,
        identity: ModelIdentity | None,
        hashes: tuple[bytes, ...],
    ) -> None:
        self.request = request
        self.sink = sink
        self.identity = identity
        self.hashes = hashes
        self.attempt: Attempt | None = None
        self.tried: set[str] = set()
        """Names of engines that have refused or lost it."""
        self.num_moves = 0
        self.num_unexplained = 0
        """How often it was lost by an engine that went on as if nothing had happened: that may be a death not seen."""
        self.has_output = False
        self.is_aborted = False
        self.is_held = False
        self.aborted_choices: set[int] = set()

    def tell_wishes(self) -> None:
        """Tells a new engine what the last one was told."""
        if self.attempt is None:
            return
        engine, request_id = self.attempt.member.engine, self.request.request_id
        for choice in sorted(self.aborted_choices):
            engine.abort(request_id, choice)
        if self.is_held:
            engine.hold(request_id, held=True)


class Attempt:
    """Implements `DeltaSink` towards one engine."""

    __slots__ = ("_pool", "_share", "member", "placement")

    def __init__(self, pool: Keeper, placement: Placement, member: PoolMember, share: WorkShare) -> None:
        self.placement = placement
        self.member = member
        self._pool = pool
        self._share = share

    def deliver(self, delta: TokenDelta) -> None:
        """See `DeltaSink.deliver`."""
        placement = self.placement
        if placement.attempt is not self:
            self._pool.note_stale()
            return
        is_last = delta.finish is not None
        self._share.take(delta.choice, len(delta.token_ids), is_last=is_last)
        if not placement.has_output:
            placement.has_output = True
            self._pool.note_answer(self.member)
        if is_last and self._share.is_empty:
            self._pool.forget(placement)
        placement.sink.deliver(delta)

    def fail(self, error: ServeError) -> None:
        """See `DeltaSink.fail`."""
        if self.placement.attempt is not self:
            self._pool.note_stale()
            return
        self._pool.take_failure(self, error)

    def close(self) -> None:
        """The engine owes nothing of it any more."""
        self._share.close()
