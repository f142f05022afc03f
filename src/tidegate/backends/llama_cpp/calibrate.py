"""Times a few passes of a loaded model, within a budget, and leaves the cache as empty as it found it.

A disturbed measurement is worse than none: where threads were off their cores for a part of the time, nothing is
concluded, the rest is not timed, and the thread governor goes on from the default.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tidegate.backends.llama_cpp.calibration import Calibration, DecodeTiming, choose_chunk, choose_threads
from tidegate.backends.llama_cpp.thread_governor import LOW_PRESENCE
from tidegate.core.backend import Backend
from tidegate.core.plan import DecodeRow, KvDrop, PrefillSlice, StepPlan

BUDGET_S = 3.0
"""A pass that has begun is finished: a large model on a small machine takes the time of one longer."""
CONTEXT = 8
"""Tokens of each sequence in the cache before the decodes that are timed."""
BATCHES = (1, 8)
CHUNKS = (16, 32, 64, 128, 256, 512, 1024)
REPEATS = 3
TOKEN_ID = 0


@dataclass(slots=True)
class Stopwatch:
    """Wall and processor time, in seconds; `ends_at` is when the budget is used up."""

    ends_at: float
    wall: Callable[[], float] = field(default=time.perf_counter)
    cpu: Callable[[], float] = field(default=time.process_time)
    was_disturbed: bool = False

    @property
    def is_over(self) -> bool:
        return self.was_disturbed or self.wall() >= self.ends_at

    def time(self, act: Callable[[], object], num_threads: int | None) -> float:
        """Returns how long `act` took, and notes when `num_threads` threads did not really run for all of it."""
        wall_s, cpu_s = self.wall(), self.cpu()
        act()
        wall_s, cpu_s = self.wall() - wall_s, self.cpu() - cpu_s
        if num_threads is not None and cpu_s < LOW_PRESENCE * wall_s * num_threads:
            self.was_disturbed = True
        return wall_s


@dataclass(frozen=True, slots=True)
class Subject:
    """What is timed. `set_threads` is None where threads of the processor do not matter (a GPU)."""

    backend: Backend
    processors: int
    set_threads: Callable[[int], None] | None


def calibrate(subject: Subject, watch: Stopwatch) -> Calibration:
    """Returns what suits best, of what could be timed. The number of threads is left at what was found, or at the
    number of processors. Raises BackendError where a pass fails.
    """
    num_threads: int | None = None
    if subject.set_threads is not None and subject.processors > 1:
        num_threads = choose_threads(_time_threads(subject, watch))
    used = None if subject.set_threads is None else num_threads or subject.processors
    if subject.set_threads is not None and used is not None:
        subject.set_threads(used)
    chunk = choose_chunk(dict(_time_chunks(subject, watch, used)))
    if watch.was_disturbed:
        if subject.set_threads is not None:
            subject.set_threads(subject.processors)
        return Calibration()
    return Calibration(num_threads, chunk)


def _time_threads(subject: Subject, watch: Stopwatch) -> Iterator[DecodeTiming]:
    assert subject.set_threads is not None
    numbers = sorted({subject.processors, max(1, subject.processors * 3 // 4), max(1, subject.processors // 2)})
    for batch in BATCHES:
        if batch > subject.backend.caps.max_sequences or watch.is_over:
            continue
        sequences = _Sequences(subject.backend, batch)
        for num_threads in reversed(numbers):
            subject.set_threads(num_threads)
            times = [watch.time(sequences.decode, num_threads) for _ in range(REPEATS) if not watch.is_over]
            if times:
                yield DecodeTiming(num_threads, batch, min(times))
        sequences.drop()


def _time_chunks(subject: Subject, watch: Stopwatch, num_threads: int | None) -> Iterator[tuple[int, float]]:
    caps = subject.backend.caps
    for num_tokens in CHUNKS:
        if num_tokens > min(caps.max_step_tokens, caps.max_model_len) or watch.is_over:
            return
        prefill = StepPlan(prefill=[PrefillSlice(0, 0, [TOKEN_ID] * num_tokens, wants_last=True)])
        yield num_tokens, watch.time(partial(subject.backend.execute, prefill), num_threads)
        subject.backend.execute(StepPlan(moves=[KvDrop(0)]))


class _Sequences:
    """Some sequences with a little context, which grow by a token with each decode."""

    def __init__(self, backend: Backend, batch: int) -> None:
        self._backend = backend
        self._ids = range(batch)
        self._length = CONTEXT
        slices = [PrefillSlice(seq_id, 0, [TOKEN_ID] * CONTEXT, wants_last=True) for seq_id in self._ids]
        backend.execute(StepPlan(prefill=slices))

    def decode(self) -> None:
        self._backend.execute(StepPlan(decode=[DecodeRow(seq_id, self._length, TOKEN_ID) for seq_id in self._ids]))
        self._length += 1

    def drop(self) -> None:
        self._backend.execute(StepPlan(moves=[KvDrop(seq_id) for seq_id in self._ids]))
