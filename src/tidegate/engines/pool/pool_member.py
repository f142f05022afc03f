"""PoolMember: one engine of a pool, with what the pool knows of it."""

from tidegate.engine.gauges import EngineStatus
from tidegate.engine.port import Engine
from tidegate.engines.pool.identity import ModelIdentity, identity_of
from tidegate.engines.pool.member_health import HealthRule, MemberHealth
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.outstanding import EngineAccount
from tidegate.engines.pool.pool_status import MemberStatus
from tidegate.engines.pool.prefix_memory import PrefixMemory
from tidegate.engines.pool.routing import Candidate


class PoolMember:
    """`name` is unique in the pool."""

    def __init__(self, name: str, engine: Engine, rule: HealthRule) -> None:
        self.name = name
        self.engine = engine
        self.health = MemberHealth(rule)
        self.account = EngineAccount()
        self.prefixes = PrefixMemory()
        self.status: EngineStatus = engine.statistics()
        self.identity: ModelIdentity | None = None
        self.is_conflicting = False
        self.num_submitted = self.num_lost = self.num_moved = 0
        self.num_prompt_tokens = self.num_matched_tokens = 0
        self._epoch: int | None = None

    def look(self) -> None:
        """Reads what the engine says of itself. A new process has an empty cache, and may serve another revision."""
        self.status = self.engine.statistics()
        model = self.status.model
        if model is None or (self._epoch == self.status.epoch and self.identity is not None):
            return
        self._epoch = self.status.epoch
        self.identity = identity_of(model)
        self.prefixes.forget()
        self.prefixes.resize(model.num_blocks * model.block_tokens)

    @property
    def is_up(self) -> bool:
        """Whether it could answer: ready, with a revision that the pool serves."""
        return self.status.is_ready and not self.is_conflicting

    @property
    def is_open(self) -> bool:
        """Whether it gets requests before others do."""
        state = self.health.state
        if state is MemberState.PROBING:
            return self.account.num_requests == 0
        return state is MemberState.READY

    @property
    def is_last_resort(self) -> bool:
        """Whether it is tried when nobody is open: better than to refuse."""
        return self.is_up and self.health.state in (MemberState.EJECTED, MemberState.PROBING)

    def candidate(self, hashes: tuple[bytes, ...]) -> Candidate:
        """Returns what routing looks at."""
        model = self.status.model
        return Candidate(
            name=self.name,
            num_tokens=self.account.num_tokens,
            num_sequences=self.account.num_sequences,
            num_rows=1 if model is None else max(1, model.max_sequences),
            num_matched_tokens=self.prefixes.match(hashes),
            num_before=self.num_submitted,
        )

    def describe(self, now: float) -> MemberStatus:
        """Returns a snapshot."""
        health, account = self.health, self.account
        return MemberStatus(
            name=self.name,
            state=health.state,
            status=self.status,
            num_tokens=account.num_tokens,
            num_requests=account.num_requests,
            num_sequences=account.num_sequences,
            is_conflicting=self.is_conflicting,
            cause=health.cause,
            out_for_s=None if health.out_until is None else max(0.0, health.out_until - now),
            num_submitted=self.num_submitted,
            num_lost=self.num_lost,
            num_moved=self.num_moved,
            num_ejections=health.num_ejections,
            num_prompt_tokens=self.num_prompt_tokens,
            num_matched_tokens=self.num_matched_tokens,
        )
