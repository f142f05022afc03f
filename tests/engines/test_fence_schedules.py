"""The fence under random schedules: whatever is late, doubled or restarted, no client reads another attempt's text.

A worker finishes after its connection died, a client retries at once under the name of its first attempt (and, where
the engine is a new one, under the same inner id), an engine restarts in the middle of a stream, frames come late or
twice. After every move each client has a prefix of its own attempt's text, and exactly the late outputs are counted.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.fence_scene import WORK_OVER, Attempt, Scene

WIRE_IDS = st.sampled_from(["one", "two", "three"])
LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=2)
PICK = st.integers(0, 1_000_000)


class Fence(RuleBasedStateMachine):
    """Clients, two halves, and everything that can go wrong between them."""

    @initialize()
    def begin(self) -> None:
        self.scene = Scene()
        self.num_ids = 0

    def teardown(self) -> None:
        if hasattr(self, "scene"):
            self.scene.finish()
            self.scene.loop.close()

    @property
    def readers(self) -> list[Attempt]:
        return [attempt for attempt in self.scene.attempts if not attempt.is_over]

    def fresh_id(self) -> str:
        self.num_ids += 1
        return f"r{self.num_ids}"

    # ---- clients ----

    @rule(wire_id=WIRE_IDS, lengths=LENGTHS)
    def ask(self, wire_id: str, lengths: list[int]) -> None:
        self.scene.begin(wire_id, self.fresh_id(), lengths)

    @precondition(lambda self: self.readers)
    @rule(pick=PICK)
    def read(self, pick: int) -> None:
        self.scene.read(self.readers[pick % len(self.readers)])

    @precondition(lambda self: self.readers)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        self.scene.leave(self.readers[pick % len(self.readers)])

    @precondition(lambda self: self.readers)
    @rule(pick=PICK, lengths=LENGTHS)
    def leave_and_retry_at_once(self, pick: int, lengths: list[int]) -> None:
        attempt = self.readers[pick % len(self.readers)]
        self.scene.leave(attempt)
        self.scene.begin(attempt.wire_id, self.fresh_id(), lengths)

    @precondition(lambda self: self.lost)
    @rule(pick=PICK, lengths=LENGTHS)
    def retry_what_an_older_engine_lost_under_its_inner_id(self, pick: int, lengths: list[int]) -> None:
        attempt = self.lost[pick % len(self.lost)]
        self.scene.begin(attempt.wire_id, attempt.request_id, lengths)

    @property
    def lost(self) -> list[Attempt]:
        """Attempts of older engines whose inner id nobody uses under the present one."""
        scene = self.scene
        used = {attempt.request_id for attempt in scene.attempts if attempt.epoch == scene.pair.epoch}
        return [
            attempt
            for attempt in scene.attempts
            if attempt.request_id not in used and attempt.driver.machine.work in WORK_OVER
        ]

    # ---- the engine ----

    @rule(num_steps=st.integers(1, 4))
    def work(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.scene.run(self.scene.pair.step)

    @rule()
    def restart(self) -> None:
        self.scene.run(self.scene.pair.restart)

    @rule()
    def vanish(self) -> None:
        """No engine for a while."""
        self.scene.run(self.scene.pair.lose)

    @precondition(lambda self: self.scene.pair.transport is not None)
    @rule()
    def reconnect_to_the_same_engine(self) -> None:
        self.scene.run(self.scene.pair.lose)
        self.scene.run(self.scene.pair.connect)

    @precondition(lambda self: self.scene.pair.transport is not None)
    @rule()
    def restart_while_the_old_worker_goes_on(self) -> None:
        self.scene.run(self.scene.pair.abandon)
        self.scene.run(self.scene.pair.start)
        self.scene.run(self.scene.pair.connect)

    # ---- what is late ----

    @precondition(lambda self: self.scene.pair.zombies and self.scene.pair.transport is not None)
    @rule(pick=PICK)
    def an_old_worker_finishes_a_step(self, pick: int) -> None:
        zombies = self.scene.pair.zombies
        epoch, core = zombies[pick % len(zombies)]
        self.scene.inject([(epoch, delta) for delta in core.step(self.scene.clock.now())])

    @precondition(lambda self: self.scene.pair.late and self.scene.pair.transport is not None)
    @rule()
    def frames_of_a_dead_connection_arrive(self) -> None:
        late, self.scene.pair.late = self.scene.pair.late, []
        self.scene.inject(late)

    @precondition(lambda self: self.scene.pair.seen and self.scene.pair.transport is not None)
    @rule(pick=PICK)
    def an_old_output_comes_again(self, pick: int) -> None:
        seen = self.scene.pair.seen
        epoch, delta = seen[pick % len(seen)]
        self.scene.inject([(epoch, delta)])

    @precondition(lambda self: self.scene.pair.transport is not None)
    @rule()
    def frames_are_kept_back(self) -> None:
        self.scene.pair.is_delayed = True

    @rule()
    def frames_get_through(self) -> None:
        self.scene.run(self.scene.pair.release)

    @invariant()
    def nobody_reads_what_is_not_its_own(self) -> None:
        if hasattr(self, "scene"):
            self.scene.check()


TestFence = Fence.TestCase
TestFence.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
