"""MemberHealth: whether one engine of a pool gets requests.

Decides from what the engine says of itself, from requests that it refused or lost, and from what operators say; time
is an argument. What failed stays out for a wait that doubles with each ejection in a row, up to a ceiling; then one
request at a time finds out whether it is well. An engine that has been well for `calm_s` begins anew with the first
wait. The table of states is in `member_states.py`. Does not know engines, requests, or the other members.
"""

from dataclasses import dataclass

from tidegate.engines.pool.member_states import MEMBER, MemberEvent, MemberState


@dataclass(frozen=True, slots=True)
class HealthRule:
    """`num_faults` refusals and losses in a row eject an engine that says that it is ready. Waits are seconds.

    Without `needs_proof` an engine is believed once its wait is over: for who watches engines and gives them nothing.
    """

    num_faults: int = 3
    first_wait_s: float = 0.5
    max_wait_s: float = 30.0
    calm_s: float = 60.0
    needs_proof: bool = True

    def __post_init__(self) -> None:
        if self.num_faults < 1 or not 0 < self.first_wait_s <= self.max_wait_s or self.calm_s < 0:
            raise ValueError(f"health rule out of range: {self}")


class MemberHealth:
    """`observe` before each question: what is true depends on the time and on the engine's own word."""

    def __init__(self, rule: HealthRule) -> None:
        self._rule = rule
        self._state = MemberState.STARTING
        self._num_faults = 0
        """In a row: an answer ends it, and whoever was out serves again only after one."""
        self._num_in_row = 0
        self._num_ejections = 0
        self._well_since: float | None = None
        self._out_until: float | None = None
        self._cause: str | None = None

    @property
    def state(self) -> MemberState:
        return self._state

    @property
    def num_ejections(self) -> int:
        """How often it was ejected since it joined."""
        return self._num_ejections

    @property
    def cause(self) -> str | None:
        """Why it was ejected last, for operators."""
        return self._cause

    @property
    def out_until(self) -> float | None:
        """When it may come back; None where it is not out, or only an operator can say."""
        return self._out_until if self._state is MemberState.EJECTED else None

    def observe(self, now: float, *, is_up: bool, reason: str = "it is not ready") -> None:
        """Takes the engine's own word. `reason` says why it is not up."""
        if not is_up:
            self._eject(MemberEvent.DOWN, reason, now)
        elif self._state is MemberState.STARTING:
            self._apply(MemberEvent.UP)
            self._well_since = now
        elif self._state is MemberState.EJECTED and self._out_until is not None and now >= self._out_until:
            self._apply(MemberEvent.WAIT_OVER)
        if is_up and self._state is MemberState.PROBING and not self._rule.needs_proof:
            self.note_answer(now)

    def note_fault(self, now: float, cause: str) -> None:
        """It refused a request, or lost one, though it had said that it was ready."""
        self._num_faults += 1
        if self._num_faults >= self._rule.num_faults or self._state is MemberState.PROBING:
            self._eject(MemberEvent.FAULT, cause, now)

    def note_answer(self, now: float) -> None:
        """An output of it came."""
        self._num_faults = 0
        if self._apply(MemberEvent.PROOF):
            self._well_since = now

    def drain(self) -> None:
        """Gives it nothing more, until `restore`."""
        self._apply(MemberEvent.DRAIN)

    def retire(self) -> None:
        """Gives it nothing more: it leaves when it has nothing left."""
        self._apply(MemberEvent.RETIRE)

    def restore(self) -> None:
        """Ends a drain, or a retirement. Harmless without one."""
        self._apply(MemberEvent.RETURN)

    def leave(self) -> None:
        """It is no member any more."""
        self._apply(MemberEvent.LEAVE)

    def _eject(self, event: MemberEvent, cause: str, now: float) -> None:
        if not self._apply(event):
            return
        rule = self._rule
        if self._well_since is not None and now - self._well_since >= rule.calm_s:
            self._num_in_row = 0
        wait_s = min(rule.max_wait_s, rule.first_wait_s * 2.0 ** min(self._num_in_row, 60))
        self._num_in_row += 1
        self._num_ejections += 1
        self._well_since = None
        self._out_until = now + wait_s
        self._cause = cause

    def _apply(self, event: MemberEvent) -> bool:
        """Says whether the event changed the state."""
        new = MEMBER[self._state].get(event)
        if new is None:
            return False
        self._state = new
        return True
