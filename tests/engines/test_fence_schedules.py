"""The fence under random schedules: whatever is late, doubled or restarted, no client reads another attempt's text.

A worker finishes after its connection died, a client retries at once under the name of its first attempt (and, where
the engine is a new one, under the same inner id), an engine restarts in the middle of a stream, frames come late or
twice. After every move each client has a prefix of its own attempt's text, and exactly the late outputs are counted.
"""

from hypothesis import HealthCheck, Phase, settings
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
    @rule(lengths=LENGTHS)
    def retry_all_that_older_engines_lost_under_their_inner_ids(self, lengths: list[int]) -> None:
        for attempt in {attempt.request_id: attempt for attempt in self.lost}.values():
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
    @rule(lengths=LENGTHS, has_retries=st.booleans())
    def restart_while_the_old_worker_goes_on(self, lengths: list[int], has_retries: bool) -> None:
        self.scene.restart_unnoticed()
        if has_retries:
            self.retry_all_that_older_engines_lost_under_their_inner_ids(lengths)

    # ---- what is late ----

    @precondition(lambda self: self.scene.pair.zombies and self.scene.pair.transport is not None)
    @rule(pick=PICK)
    def an_old_worker_finishes_a_few_steps(self, pick: int) -> None:
        zombies = self.scene.pair.zombies
        for _ in range(4):
            self.scene.step_zombie(pick % len(zombies))

    @precondition(lambda self: self.scene.pair.late and self.scene.pair.transport is not None)
    @rule()
    def frames_of_a_dead_connection_arrive(self) -> None:
        late, self.scene.pair.late = self.scene.pair.late, []
        self.scene.inject(late)

    @precondition(lambda self: self.scene.pair.seen and self.scene.pair.transport is not None)
    @rule(pick=PICK)
    def old_outputs_come_again(self, pick: int) -> None:
        seen = self.scene.pair.seen
        first = pick % len(seen)
        self.scene.inject(seen[first : first + 20])

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
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    # A failing schedule is short enough to read as it is; making it shorter takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


def test_an_old_worker_that_goes_on_is_not_read_by_a_retry_under_the_same_inner_id() -> None:
    scene = Scene()
    first = scene.begin("wire", "inner", [5, 6])
    for _ in range(2):
        scene.run(scene.pair.step)
    scene.read(first)
    scene.restart_unnoticed()
    retry = scene.begin("wire", "inner", [5, 6])
    num_late = sum(scene.step_zombie(0) for _ in range(20))
    scene.finish()
    assert first.writer.texts == ["<0", "<0"]
    assert retry.writer.texts == retry.texts
    assert num_late > 10
    assert scene.pair.engine.statistics().num_stale_outputs == num_late
    assert sorted(scene.ledger.ends) == ["error", "stop"]


def test_frames_that_a_dead_connection_still_held_are_dropped_and_counted() -> None:
    scene = Scene()
    held = scene.begin("wire", "inner", [8])
    scene.run(scene.pair.step)
    scene.pair.is_delayed = True
    for _ in range(3):
        scene.run(scene.pair.step)
    scene.run(scene.pair.lose)
    scene.run(scene.pair.connect)
    late, scene.pair.late = scene.pair.late, []
    assert len(late) == 3
    scene.inject(late)
    scene.finish()
    assert held.error is not None
    assert scene.pair.engine.statistics().num_stale_outputs == 3
