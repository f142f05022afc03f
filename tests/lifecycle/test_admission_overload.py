"""Overload on a virtual clock: who waits how long, what is done meanwhile, and what comes after."""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from harness.gate_scene import GateScene
from tidegate.errors import QueueFull
from tidegate.lifecycle.admission import AdmissionLimits

SLOT_S = 1.0
NUM_ROWS = 8


@dataclass(slots=True)
class Rows:
    """An engine of `num_rows` rows whose every request takes one slot of time; what it is given beyond that waits."""

    scene: GateScene
    num_rows: int
    running: list[tuple[float, str]] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    started_at: dict[str, float] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    _num_seen: int = 0

    def fill(self) -> None:
        self.inner += self.scene.admitted[self._num_seen :]
        self._num_seen = len(self.scene.admitted)
        while self.inner and len(self.running) < self.num_rows:
            name = self.inner.pop(0)
            self.started_at[name] = self.scene.now
            self.scene.start(name)
            heapq.heappush(self.running, (self.scene.now + SLOT_S, name))

    def end_next(self) -> str:
        """Moves on to the next end of a request."""
        end_at, name = heapq.heappop(self.running)
        self.scene.advance(max(0.0, end_at - self.scene.now))
        self.scene.leave(name)
        self.ended.append(name)
        self.fill()
        return name


def rows(num_rows: int, queue_depth: int, **limits: int) -> Rows:
    return Rows(GateScene(AdmissionLimits(num_rows, queue_depth, 1_000_000, **limits)), num_rows)


@pytest.mark.parametrize("num_rows", [1, 2, 4, 8, 32])
def test_a_key_with_a_hundred_waiting_does_not_starve_a_key_with_one(num_rows: int) -> None:  # OVL-5
    """A keeps a hundred requests coming; B asks once at a time. Alone B waits for nothing, so it may wait one slot."""
    engine = rows(num_rows, 1000, queue_deadline_ms=1_000_000)
    num_sent = {"a": 0, "b": 0}
    asked_at: dict[str, float] = {}

    def ask(key: str) -> None:
        name = f"{key}{num_sent[key]}"
        num_sent[key] += 1
        asked_at[name] = engine.scene.now
        engine.scene.enter(name, key=key)
        engine.fill()

    for _ in range(num_rows):
        ask("a")
        engine.scene.now += SLOT_S / num_rows
    for _ in range(100):
        ask("a")
    for _ in range(num_rows * 3):
        engine.end_next()
        ask("a")
    ask("b")
    while num_sent["b"] <= 30:
        ask(engine.end_next()[0])
    waits = [engine.started_at[f"b{i}"] - asked_at[f"b{i}"] for i in range(30)]
    assert max(waits) <= SLOT_S + 1e-9
    assert engine.scene.refused == {}


def test_ten_keys_get_equal_shares_whatever_they_send() -> None:  # OVL-5
    engine = rows(NUM_ROWS, 2000, queue_deadline_ms=1_000_000)
    for key in range(10):
        for i in range(12 + 4 * key):
            engine.scene.enter(f"{key}-{i}", key=str(key))
    engine.fill()
    while len(engine.ended) < 100:
        engine.end_next()
    served: defaultdict[str, int] = defaultdict(int)
    for name in engine.ended:
        served[name.partition("-")[0]] += 1
    assert max(served.values()) - min(served.values()) <= NUM_ROWS + 2


def overload(engine: Rows, num_slots: int, factor: int) -> int:
    """Sends `factor` times what fits, for `num_slots` slots; returns how many were refused at once."""
    num_refused = 0
    ends_at = engine.scene.now + num_slots * SLOT_S
    pause_s = SLOT_S / engine.num_rows / factor
    number = 0
    while engine.scene.now < ends_at:
        try:
            engine.scene.enter(f"{engine.scene.now:.6f}", prompt=10)
        except QueueFull:
            num_refused += 1
        engine.fill()
        number += 1
        next_at = engine.scene.now + pause_s
        while engine.running and engine.running[0][0] <= next_at:
            engine.end_next()
        engine.scene.advance(max(0.0, next_at - engine.scene.now))
    return num_refused


def test_at_five_times_capacity_all_rows_stay_busy_and_the_rest_is_refused_at_once() -> None:  # OVL-2
    engine = rows(NUM_ROWS, 16)
    num_refused = overload(engine, num_slots=20, factor=5)
    assert len(engine.ended) >= 0.9 * 20 * NUM_ROWS
    assert num_refused >= 0.7 * 5 * 20 * NUM_ROWS
    waits = [started_at - float(name) for name, started_at in engine.started_at.items()]
    assert max(waits) <= SLOT_S * (2 + 16 / NUM_ROWS)


def test_after_an_overload_admission_is_as_before_once_the_queue_has_gone() -> None:  # OVL-9
    """No timer, no penalty, no memory of it: what is left is what waits, and that goes in its slots."""
    engine = rows(NUM_ROWS, 16)
    overload(engine, num_slots=20, factor=5)
    overload_ended_at = engine.scene.now
    while engine.running:
        engine.end_next()
    assert engine.scene.now - overload_ended_at <= SLOT_S * (2 + 16 / NUM_ROWS)
    engine.scene.check_empty()
    num_before = len(engine.scene.admitted)
    for i in range(NUM_ROWS):
        engine.scene.enter(f"after{i}")
    assert len(engine.scene.admitted) == num_before + NUM_ROWS, "each is let in by its first poll"


def test_marked_retries_are_requests_like_any_other() -> None:  # OVL-7
    """What admission is told has no place for a mark: a retry waits for its turn behind those that came before."""
    engine = rows(1, 10)
    for name in ("runs", "first", "retry"):
        engine.scene.enter(name)
    engine.fill()
    while engine.running:
        engine.end_next()
    assert engine.ended == ["runs", "first", "retry"]
