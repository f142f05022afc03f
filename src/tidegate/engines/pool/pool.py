"""EnginePool: several engines behind one `Engine` port.

Gives each request to one engine (`routing.py`) of those that are well (`member_health.py`), and counts what each owes
(`outstanding.py`). A request whose engine is lost before any output of it came is given to another one, a bounded
number of times; any other failure ends it. Random draws depend on seed and position alone, so it makes no difference
which engine answers.

Without `is_rolling` all engines serve one revision: one that comes with another is left out while any of the first is
ready. With it, a request never moves between revisions, and `choose_lane` keeps a call to one of them.

Engines may join and leave at any time. Time and engines are given from outside; nothing here waits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidegate.engine.gauges import EngineStatus
from tidegate.engine.lane import Lane
from tidegate.engine.port import DeltaSink, Engine
from tidegate.engines.pool.identity import ModelIdentity, differences
from tidegate.engines.pool.lane_engine import LaneEngine
from tidegate.engines.pool.member_health import HealthRule
from tidegate.engines.pool.member_states import TAKEN_OUT, MemberState
from tidegate.engines.pool.outstanding import WorkShare
from tidegate.engines.pool.placement import Attempt, Placement
from tidegate.engines.pool.pool_member import PoolMember
from tidegate.engines.pool.pool_status import MemberStatus, join_models, join_status
from tidegate.engines.pool.prefix_hash import block_hashes
from tidegate.engines.pool.routing import RoutingRule, Work, rank
from tidegate.errors import EngineLost, EngineUnavailable, InternalError, ServeError
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.poison import MIN_DEATHS

_LOSSES = (EngineLost, EngineUnavailable)
"""Failures that are the engine's, and not the request's."""


@dataclass(frozen=True, slots=True)
class PoolRule:
    """`max_moves`: how often one request may be given to another engine, after the first."""

    routing: RoutingRule = field(default_factory=RoutingRule)
    health: HealthRule = field(default_factory=HealthRule)
    max_moves: int = 1
    is_rolling: bool = False

    def __post_init__(self) -> None:
        if self.max_moves < 0:
            raise ValueError(f"max_moves {self.max_moves} is below 0")


class EnginePool:
    """Implements `Engine`. `now` is a monotonic clock, in seconds."""

    def __init__(self, rule: PoolRule, now: Callable[[], float]) -> None:
        self._rule = rule
        self._now = now
        self._members: dict[str, PoolMember] = {}
        self._placements: dict[str, Placement] = {}
        self._identity: ModelIdentity | None = None
        self._num_stale = 0

    # ---- members ----

    def join(self, name: str, engine: Engine) -> None:
        """Adds an engine. Raises ValueError for a name that a member has."""
        if name in self._members:
            raise ValueError(f"the pool has an engine {name} already")
        self._members[name] = PoolMember(name, engine, self._rule.health)

    def leave(self, name: str) -> None:
        """Takes an engine out for good. What it is working on goes on; its name is free again when that has ended."""
        member = self.member(name)
        member.health.leave()
        self._drop_gone(member)

    def drain(self, name: str) -> None:
        """Gives an engine no more requests, until `restore`; what it is working on goes on."""
        self.member(name).health.drain()

    def retire(self, name: str) -> None:
        """As `drain`, for an engine that shall `leave` when it has nothing left; `restore` keeps it."""
        self.member(name).health.retire()

    def restore(self, name: str) -> None:
        """Ends the drain or the retirement of an engine: it is tried with one request first."""
        self.member(name).health.restore()

    def eject(self, name: str) -> int:
        """As `drain`, and takes back what it is working on: requests without output move, the others fail.

        Returns how many requests it had. One that is retiring still is.
        """
        member = self.member(name)
        member.health.drain()
        attempts = [one.attempt for one in self._placements.values() if one.attempt is not None]
        taken = [attempt for attempt in attempts if attempt.member is member]
        for attempt in taken:
            member.engine.abort(attempt.placement.request.request_id)
            self.take_failure(attempt, EngineLost("An operator took the engine out that worked on this request."))
        return len(taken)

    def member(self, name: str) -> PoolMember:
        """Raises KeyError for a name that no member has."""
        return self._members[name]

    # ---- the port ----

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        """See `Engine.submit`. Raises also what the engine says of the request itself."""
        self.submit_within(request, sink, None)

    def submit_within(self, request: InferenceRequest, sink: DeltaSink, identity: ModelIdentity | None) -> None:
        """As `submit`, for engines of one identity only; None for any."""
        if request.request_id in self._placements:
            raise InternalError(f"request {request.request_id} was submitted twice")
        placement = Placement(request, sink, identity, self._hashes(request))
        self._look()
        self._placements[request.request_id] = placement
        try:
            self._place(placement)
        except ServeError:
            del self._placements[request.request_id]
            raise

    def abort(self, request_id: str, choice: int | None = None) -> None:
        """See `Engine.abort`."""
        placement = self._placements.get(request_id)
        if placement is None or placement.attempt is None:
            return
        if choice is None:
            placement.is_aborted = True
        else:
            placement.aborted_choices.add(choice)
        placement.attempt.member.engine.abort(request_id, choice)

    def hold(self, request_id: str, *, held: bool) -> None:
        """See `Engine.hold`."""
        placement = self._placements.get(request_id)
        if placement is not None and placement.attempt is not None:
            placement.is_held = held
            placement.attempt.member.engine.hold(request_id, held=held)

    def statistics(self) -> EngineStatus:
        """See `Engine.statistics`."""
        return join_status(self.members(), self._num_stale)

    # ---- for operators, metrics and the gate ----

    def members(self) -> list[MemberStatus]:
        """Returns a snapshot of each engine, in the order in which they joined."""
        self._look()
        now = self._now()
        return [member.describe(now) for member in self._members.values()]

    @property
    def num_open(self) -> int:
        """Requests whose sinks have not been told an end."""
        return len(self._placements)

    def conflict(self) -> str | None:
        """Returns why some engine that is ready is left out, and what to do; None where none is."""
        conflicts = [self.conflict_of(name) for name in self._members]
        return next((words for words in conflicts if words is not None), None)

    def conflict_of(self, name: str) -> str | None:
        """As `conflict`, of one engine."""
        self._look()
        member = self.member(name)
        if not member.is_conflicting or self._identity is None or member.identity is None:
            return None
        return (
            f"Engine {name} serves another revision than the rest of its pool: they differ in "
            f"{differences(self._identity, member.identity)}. Serve one revision, or set pool.rolling to true."
        )

    def choose_lane(self) -> Lane:
        """Returns the engines that shall answer one call: those of one revision, the one with the most room."""
        members = self.members()
        if not self._rule.is_rolling:
            return Lane(self, join_models(members))
        usable = [one for one in self._members.values() if one.is_up and one.is_open]
        usable = usable or [one for one in self._members.values() if one.is_last_resort]
        ranked = rank([one.candidate(()) for one in usable], Work(0, 0), RoutingRule())
        if not ranked:
            return Lane(self, join_models(members))
        identity = self._members[ranked[0].name].identity
        same = [one for one in members if self._members[one.name].identity == identity]
        return Lane(LaneEngine(self, identity), join_models(same))

    def forget_prefixes(self, name: str) -> None:
        """The engine has dropped its cache."""
        self.member(name).prefixes.forget()

    # ---- from attempts ----

    def note_answer(self, member: PoolMember) -> None:
        """See `Keeper.note_answer`."""
        member.health.note_answer(self._now())

    def note_stale(self) -> None:
        """See `Keeper.note_stale`."""
        self._num_stale += 1

    def take_failure(self, attempt: Attempt, error: ServeError) -> None:
        """See `Keeper.take_failure`."""
        placement, member = attempt.placement, attempt.member
        attempt.close()
        placement.attempt = None
        if isinstance(error, _LOSSES):
            self._note_loss(member, error)
            placement.num_unexplained += isinstance(error, EngineLost) and member.status.is_ready
            if self._may_move(placement):
                placement.tried.add(member.name)
                try:
                    self._place(placement)
                except EngineUnavailable:
                    pass  # nobody else is there: the first word stands
                except ServeError as refusal:
                    error = refusal
                else:
                    placement.num_moves += 1
                    member.num_moved += 1
                    self._drop_gone(member)
                    return
        self.forget(placement)
        self._drop_gone(member)
        placement.sink.fail(error)

    def _may_move(self, placement: Placement) -> bool:
        """Deaths that engines notice make a request suspect to all of them. Of a loss that nobody has explained yet
        the engine may be dead all the same: so after two of them it is tried nowhere else.
        """
        is_suspect = placement.num_unexplained >= MIN_DEATHS
        may_be_answered = not placement.has_output and not placement.is_aborted
        return may_be_answered and not is_suspect and placement.num_moves < self._rule.max_moves

    def forget(self, placement: Placement) -> None:
        """See `Keeper.forget`."""
        del self._placements[placement.request.request_id]
        attempt, placement.attempt = placement.attempt, None
        if attempt is not None:
            attempt.close()
            self._drop_gone(attempt.member)

    # ---- placing ----

    def _place(self, placement: Placement) -> None:
        """Gives a request to the best engine that takes it. Raises EngineUnavailable when none does."""
        fitting = [one for one in self._members.values() if one.is_up and self._fits(one, placement)]
        for group in (
            [one for one in fitting if one.is_open],
            [one for one in fitting if one.is_last_resort and not one.is_open],
        ):
            for member in self._ranked(group, placement):
                if self._try(member, placement):
                    return
        raise EngineUnavailable(self._why_unavailable(), retry_after_s=self._retry_after_s())

    def _hashes(self, request: InferenceRequest) -> tuple[bytes, ...]:
        """Returns what is known of its beginning; nothing where that decides nothing: prompts only read share none."""
        if len(self._members) < 2 or request.pooling is not None:
            return ()
        return block_hashes(request.prompt, request.cache_salt)

    def _fits(self, member: PoolMember, placement: Placement) -> bool:
        is_same = placement.identity is None or member.identity == placement.identity
        return is_same and member.name not in placement.tried

    def _ranked(self, group: Sequence[PoolMember], placement: Placement) -> Iterable[PoolMember]:
        request, hashes = placement.request, placement.hashes
        work = Work(
            num_prompt_tokens=request.num_prompt_tokens,
            num_output_tokens=request.stop.max_tokens * request.num_choices,
            prefix=hashes[0] if hashes else None,
        )
        ranked = rank([one.candidate(hashes) for one in group], work, self._rule.routing)
        return [self._members[one.name] for one in ranked]

    def _try(self, member: PoolMember, placement: Placement) -> bool:
        """Says whether the engine has taken the request. Raises what it says of the request itself."""
        request = placement.request
        num_matched = member.prefixes.match(placement.hashes)
        attempt = Attempt(self, placement, member, WorkShare(member.account, request, num_matched))
        placement.attempt = attempt
        try:
            member.engine.submit(request, attempt)
        except ServeError as error:
            placement.attempt = None
            attempt.close()
            if not isinstance(error, _LOSSES):
                raise
            self._note_loss(member, error)
            placement.tried.add(member.name)
            return False
        placement.identity = placement.identity or member.identity
        member.prefixes.insert(placement.hashes)
        member.num_submitted += 1
        member.num_prompt_tokens += request.num_prompt_tokens
        member.num_matched_tokens += num_matched
        placement.tell_wishes()
        return True

    def _note_loss(self, member: PoolMember, error: ServeError) -> None:
        now = self._now()
        member.num_lost += 1
        member.look()
        if member.status.is_ready:
            member.health.note_fault(now, error.message)
        else:
            member.health.observe(now, is_up=False, reason=member.status.condition or "it is not ready")

    # ---- what engines say ----

    def _look(self) -> None:
        now = self._now()
        for member in self._members.values():
            member.look()
        self._settle_identity()
        for member in self._members.values():
            reason = "it serves another revision" if member.is_conflicting else member.status.condition
            member.health.observe(now, is_up=member.is_up, reason=reason or "it is not ready")

    def _settle_identity(self) -> None:
        """Without `is_rolling` the pool serves what the first ready engine did, as long as any ready one does."""
        ready = [one for one in self._members.values() if one.status.is_ready and self._is_in(one)]
        if not self._rule.is_rolling and ready and all(one.identity != self._identity for one in ready):
            self._identity = ready[0].identity
        for member in self._members.values():
            is_other = member.identity is not None and member.identity != self._identity
            member.is_conflicting = not self._rule.is_rolling and member.status.is_ready and is_other

    def _is_in(self, member: PoolMember) -> bool:
        return member.health.state not in TAKEN_OUT

    def _drop_gone(self, member: PoolMember) -> None:
        if member.health.state is MemberState.GONE and not member.account.num_requests:
            self._members.pop(member.name, None)

    def _why_unavailable(self) -> str:
        states = {one.health.state for one in self._members.values()}
        is_out = bool(states) and states <= TAKEN_OUT
        return "Every engine has been taken out." if is_out else "No engine is ready."

    def _retry_after_s(self) -> int:
        waiting = [one.status.retry_after_s for one in self._members.values() if self._is_in(one)]
        return min(waiting, default=1)
