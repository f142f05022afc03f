"""Calibration: what is chosen from timings, what is timed and within which budget, and what is remembered."""

from pathlib import Path

import msgspec
import pytest

from tidegate.backends.llama_cpp.calibrate import BUDGET_S, Stopwatch, Subject, calibrate
from tidegate.backends.llama_cpp.calibration import Calibration, DecodeTiming, choose_chunk, choose_threads
from tidegate.backends.llama_cpp.calibration_file import (
    MAX_ENTRIES,
    calibration_key,
    read_calibration,
    write_calibration,
)
from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.backend import Backend, BackendCaps, StepLogits
from tidegate.core.plan import StepPlan

THREADS = [
    ("nothing was timed", [], None),
    ("one number says nothing", [(4, 1, 0.01), (4, 8, 0.02)], None),
    ("more is better", [(2, 1, 0.02), (4, 1, 0.01)], 4),
    ("more is worse", [(2, 1, 0.01), (4, 1, 0.02)], 2),
    ("about equal: the least", [(2, 1, 0.0101), (4, 1, 0.01)], 2),
    ("batches are weighed alike", [(2, 1, 0.01), (2, 8, 0.08), (4, 1, 0.012), (4, 8, 0.04)], 4),
    ("a batch that not all were timed with does not count", [(2, 1, 0.01), (4, 1, 0.02), (4, 8, 0.001)], 2),
    ("nothing in common", [(2, 1, 0.01), (4, 8, 0.02)], None),
]

CHUNKS = [
    ("nothing was timed", {}, None),
    ("one size says nothing", {16: 0.1}, None),
    ("a CPU: the rate hardly grows", {16: 0.082, 32: 0.147, 64: 0.282, 128: 0.519}, 128),
    ("the same, with a model three times as large", {16: 0.246, 32: 0.441, 64: 0.846, 128: 1.557}, 64),
    ("the step is long, but less is read much slower", {64: 4.0, 128: 6.0, 256: 10.0}, 256),
    ("a GPU: a pass takes the same time", {16: 0.01, 32: 0.01, 64: 0.01, 128: 0.01, 256: 0.011, 512: 0.02}, 512),
    ("the largest is the best by far", {16: 0.1, 32: 0.1}, 32),
]


@pytest.mark.parametrize(("timings", "chosen"), [case[1:] for case in THREADS], ids=[case[0] for case in THREADS])
def test_threads(timings: list[tuple[int, int, float]], chosen: int | None) -> None:
    assert choose_threads([DecodeTiming(*timing) for timing in timings]) == chosen


@pytest.mark.parametrize(("timings", "chosen"), [case[1:] for case in CHUNKS], ids=[case[0] for case in CHUNKS])
def test_chunks(timings: dict[int, float], chosen: int | None) -> None:
    assert choose_chunk(timings) == chosen


class Machine:
    """A backend on a clock of its own: a pass takes `base_s`, and `token_s` for each token on one thread; above
    `num_cores` a thread only gets in the way. `presence` is the share of the time for which threads really run.
    """

    def __init__(
        self, *, base_s: float = 0.002, token_s: float = 0.001, num_cores: int = 4, presence: float = 1.0
    ) -> None:
        shape = SimulatedShape(max_model_len=4096, max_sequences=8, max_step_tokens=512, num_blocks=4096)
        self._inner: Backend = SimulatedBackend(SimulatedModel.SUCCESSOR, shape)
        self._base_s, self._token_s, self._num_cores, self._presence = base_s, token_s, num_cores, presence
        self.num_threads = 1
        self.now_s = self.cpu_s = 0.0
        self.plans: list[StepPlan] = []

    @property
    def caps(self) -> BackendCaps:
        return self._inner.caps

    def execute(self, plan: StepPlan) -> StepLogits:
        self.plans.append(plan)
        crowd = max(1.0, self.num_threads / self._num_cores)
        useful = min(self.num_threads, self._num_cores)
        pass_s = self._base_s * crowd * crowd + self._token_s * plan.num_tokens / useful * crowd
        self.now_s += pass_s
        self.cpu_s += pass_s * self.num_threads * self._presence
        return self._inner.execute(plan)

    def close(self) -> None:
        self._inner.close()

    def set_threads(self, num_threads: int) -> None:
        self.num_threads = num_threads

    def watch(self, budget_s: float = BUDGET_S) -> Stopwatch:
        return Stopwatch(budget_s, lambda: self.now_s, lambda: self.cpu_s)


def test_a_machine_with_twice_as_many_threads_as_cores_uses_its_cores() -> None:
    machine = Machine(num_cores=4)
    found = calibrate(Subject(machine, 8, machine.set_threads), machine.watch())
    assert found.num_threads == machine.num_threads == 4
    assert found.prefill_chunk_tokens == 128


def test_a_machine_whose_cores_all_count_uses_all() -> None:
    machine = Machine(num_cores=8)
    found = calibrate(Subject(machine, 8, machine.set_threads), machine.watch())
    assert found.num_threads == machine.num_threads == 8


def test_where_passes_cost_the_same_whatever_is_in_them_chunks_are_large() -> None:
    machine = Machine(base_s=0.02, token_s=0.000_01, num_cores=1)
    found = calibrate(Subject(machine, 1, None), machine.watch())
    assert found == Calibration(None, 512)


def test_a_disturbed_machine_tells_nothing_and_keeps_the_default() -> None:
    machine = Machine(presence=0.5)
    found = calibrate(Subject(machine, 8, machine.set_threads), machine.watch())
    assert found == Calibration(None, None)
    assert machine.num_threads == 8


def test_a_large_model_is_timed_no_longer_than_the_budget_and_one_step() -> None:
    machine = Machine(base_s=0.5, token_s=0.2)
    longest_pass_s = 0.5 * 4 + 0.2 * 256
    calibrate(Subject(machine, 8, machine.set_threads), machine.watch(budget_s=3.0))
    assert machine.now_s <= 3.0 + longest_pass_s
    assert len(machine.plans) < 20


def test_nothing_is_left_in_the_cache() -> None:
    machine = Machine()
    calibrate(Subject(machine, 4, machine.set_threads), machine.watch())
    lengths: dict[int, int] = {}
    for plan in machine.plans:
        for move in plan.moves:
            lengths.pop(move.seq_id)  # type: ignore[union-attr]
        for part in plan.prefill:
            lengths[part.seq_id] = len(part.token_ids)
    assert lengths == {}


def test_what_was_found_is_remembered_by_model_and_machine(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    assert read_calibration(path, calibration_key("model")) is None
    write_calibration(path, calibration_key("model"), Calibration(4, 64))
    assert read_calibration(path, calibration_key("model")) == Calibration(4, 64)
    assert read_calibration(path, calibration_key("other model")) is None
    write_calibration(path, calibration_key("other model"), Calibration(2, 32))
    assert read_calibration(path, calibration_key("model")) == Calibration(4, 64)
    assert [entry.name for entry in tmp_path.iterdir()] == ["calibration.json"]


def test_a_bounded_number_is_remembered_and_the_oldest_goes_first(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    for number in range(MAX_ENTRIES + 3):
        write_calibration(path, f"model {number}", Calibration(number + 1, None))
    assert len(msgspec.json.decode(path.read_bytes())) == MAX_ENTRIES
    assert read_calibration(path, "model 2") is None
    assert read_calibration(path, "model 3") == Calibration(4, None)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"key": {"num_threads": "four"}}', b"\xff\xfe"], ids=repr)
def test_a_damaged_file_is_measured_over(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(content)
    assert read_calibration(path, "key") is None
    write_calibration(path, "key", Calibration(1, 16))
    assert read_calibration(path, "key") == Calibration(1, 16)


def test_a_folder_that_is_gone_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "calibration.json"
    write_calibration(path, "key", Calibration(1, 16))
    assert read_calibration(path, "key") is None
