"""Prompts that are only read: answered, refused, aborted and held, beside streams and alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.backends.simulated_pooling import SimulatedPooling
from tidegate.core.backend import BackendError, Float32Array
from tidegate.core.budget import StepLimits
from tidegate.core.pooling_backend import PoolingBackend, PoolingError
from tidegate.engine.messages import AddRequest
from tidegate.inference.finish import EngineFinish
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.script import Script
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import RequestFields, make_request

SMALL = SimulatedShape(max_model_len=64, num_blocks=64, block_tokens=4, max_sequences=4, max_step_tokens=16)
SHARE = 8


class _Recording(SimulatedPooling):
    """Keeps the batches as texts."""

    def __init__(self, mode: PoolingMode = PoolingMode.MEAN, *, max_input_tokens: int = 40) -> None:
        super().__init__(mode, max_input_tokens=max_input_tokens)
        self.batches: list[list[str]] = []

    def pool(self, prompts, task: PoolingTask) -> Float32Array:  # noqa: ANN001 - as in the port
        self.batches.append([bytes(prompt).decode() for prompt in map(list, prompts)])
        return super().pool(prompts, task)


def _driver(pooling: PoolingBackend | None, *, generates: bool = True) -> CoreDriver:
    backend = SimulatedBackend(SimulatedModel.SUCCESSOR, replace(SMALL, generates=generates))
    return CoreDriver(backend, PlainChooser(), limits=StepLimits(max_prefill_tokens=SHARE), pooling=pooling)


def _read(request_id: str, prompt: str, task: PoolingTask = PoolingTask.EMBED, **fields: object) -> InferenceRequest:
    given: RequestFields = {"pooling": task, **fields}  # type: ignore[typeddict-item]
    return make_request(request_id, prompt, max_tokens=0, **given)


def test_a_prompt_that_is_only_read_ends_with_its_vector() -> None:
    driver = _driver(_Recording())
    driver.add(_read("r", "hello"))
    driver.run()
    driver.assert_at_rest()
    record = driver.records["r", 0]
    assert (record.finish, record.token_ids, record.num_prompt_tokens) == (EngineFinish.POOLED, [], [5])
    assert record.pooled is not None
    expected = SimulatedPooling().pool([list(b"hello")], PoolingTask.EMBED)[0]
    assert np.array_equal(np.frombuffer(record.pooled, "<f4"), expected)
    assert driver.backend.plans == [], "a pooled prompt never meets the scheduler"


def test_the_counts_of_pooled_prompts_are_their_own() -> None:
    driver = _driver(_Recording())
    driver.add(_read("a", "abc"), _read("b", "defgh"))
    assert driver.core.statistics().num_waiting == 2
    assert driver.core.has_work
    driver.run()
    gauges = driver.core.statistics()
    assert (gauges.num_pooled, gauges.num_pooled_tokens, gauges.num_pooled_batches) == (2, 8, 1)
    assert (gauges.num_steps, gauges.num_prefill_tokens, gauges.num_prompt_tokens, gauges.blocks_used) == (0, 0, 0, 0)


def test_the_model_says_how_it_pools_and_whether_it_generates() -> None:
    model = _driver(_Recording(PoolingMode.CLS), generates=False).core.model
    assert (model.generates, model.pooling) == (False, _Recording(PoolingMode.CLS).caps.info)
    assert _driver(None).core.model.pooling is None


REFUSED = [
    ({}, None, "does not pool"),
    ({"task": PoolingTask.CLASSIFY}, _Recording(), "does not classify: it pools by mean"),
    ({"task": PoolingTask.EMBED}, _Recording(PoolingMode.RANK), "does not embed: it pools by rank"),
    ({"num_choices": 2}, _Recording(), "not 2 choices"),
    ({"prompt": ""}, _Recording(), "prompt is empty"),
    ({"prompt": "x" * 41}, _Recording(), "41 tokens, more than the engine's context of 40"),
]


@pytest.mark.parametrize(("fields", "pooling", "fault"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_never_be_pooled_is_refused_at_once(
    fields: dict[str, object], pooling: PoolingBackend | None, fault: str
) -> None:
    driver = _driver(pooling)
    driver.add(_read("r", **{"prompt": "hello", **fields}))  # type: ignore[arg-type]
    driver.run()
    driver.assert_at_rest()
    assert driver.records["r", 0].finish is EngineFinish.FAILED
    assert fault in (driver.records["r", 0].error or "")


def test_a_model_that_only_reads_refuses_to_generate() -> None:
    driver = _driver(_Recording(), generates=False)
    driver.add(make_request("g", "abc"), _read("r", "abc"))
    driver.run()
    driver.assert_at_rest()
    assert "generates nothing" in (driver.records["g", 0].error or "")
    assert driver.records["r", 0].finish is EngineFinish.POOLED


def test_an_abort_in_the_queue_ends_a_prompt_unread() -> None:
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(_read("a", "abc"), _read("b", "def"), _read("c", "ghi"))
    driver.abort("b")
    driver.abort("c", 1)
    driver.abort("nobody")
    driver.run()
    driver.assert_at_rest()
    assert pooling.batches == [["abc", "ghi"]]
    assert driver.records["b", 0].finish is EngineFinish.ABORTED


def test_a_held_prompt_waits_until_its_reader_is_there() -> None:
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(_read("a", "abc"), _read("b", "def"))
    driver.hold("a", held=True)
    driver.hold("a", held=True)
    driver.run()
    assert (pooling.batches, driver.core.statistics().num_held) == ([["def"]], 1)
    driver.hold("a", held=False)
    driver.run()
    driver.assert_at_rest()
    assert pooling.batches == [["def"], ["abc"]]


def test_a_held_prompt_can_be_aborted() -> None:
    driver = _driver(_Recording())
    driver.add(_read("a", "abc"))
    driver.hold("a", held=True)
    driver.abort("a")
    driver.run()
    driver.assert_at_rest()


def test_a_second_request_under_a_living_id_is_ignored_whichever_kind_it_is() -> None:
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(_read("a", "abc"), make_request("b", "xyz", max_tokens=1))
    driver.core.apply(AddRequest(make_request("a", "zzz")), 0.0)
    driver.core.apply(AddRequest(_read("b", "zzz")), 0.0)
    driver.run()
    driver.assert_at_rest()
    assert pooling.batches == [["abc"]]


def test_a_script_delays_a_prompt_and_says_what_is_counted() -> None:
    driver = _driver(_Recording())
    script = Script((), prefill_delay_s=2.0, queue_delay_s=3.0, num_prompt_tokens=77, num_cached_tokens=4)
    driver.add(_read("a", "abc", script=script))
    assert driver.core.next_wake_at(driver.clock.now()) == driver.clock.now() + 5.0
    driver.run()
    record = driver.records["a", 0]
    assert (record.num_prompt_tokens, record.num_cached_tokens, record.queue_s) == ([77], 4, 5.0)


def test_prompts_are_read_by_priority() -> None:
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(_read("a", "x" * 16, priority=5), _read("b", "y" * 16), _read("c", "z" * 40, priority=-5))
    driver.run()
    assert [batch[0][0] for batch in pooling.batches] == ["z", "y"]
    assert pooling.batches[1] == ["y" * 16, "x" * 16]


class _Broken(SimulatedPooling):
    """`fault` is raised, or its numbers are not finite."""

    def __init__(self, fault: BackendError | PoolingError | None = None) -> None:
        super().__init__()
        self._fault = fault

    def pool(self, prompts, task: PoolingTask) -> Float32Array:  # noqa: ANN001 - as in the port
        if self._fault is not None:
            raise self._fault
        vectors = super().pool(prompts, task)
        vectors[0, 3] = np.nan
        return vectors


def test_numbers_that_are_not_finite_fail_that_prompt_alone() -> None:
    driver = _driver(_Broken())
    driver.add(_read("a", "abc"), _read("b", "def"))
    driver.run()
    driver.assert_at_rest()
    assert [driver.records[name, 0].finish for name in "ab"] == [EngineFinish.FAILED, EngineFinish.POOLED]
    assert "not finite" in (driver.records["a", 0].error or "")


def test_a_batch_for_which_there_is_no_memory_fails_its_prompts_alone() -> None:
    driver = _driver(_Broken(PoolingError("there is no memory")))
    driver.add(_read("a", "abc"), _read("b", "def"), make_request("s", "ab", max_tokens=2))
    driver.run()
    driver.assert_at_rest()
    for name in "ab":
        record = driver.records[name, 0]
        assert (record.finish, record.error, record.num_deltas) == (EngineFinish.FAILED, "there is no memory", 1)
    assert driver.records["s", 0].finish is EngineFinish.LENGTH
    assert driver.core.statistics().num_pooled == 0


def test_a_failed_pass_is_the_engine_s_end() -> None:
    driver = _driver(_Broken(BackendError("no")))
    driver.add(_read("a", "abc"))
    with pytest.raises(BackendError):
        driver.run()


def test_streams_step_between_batches_and_batches_come_between_steps() -> None:
    """Neither starves: of 2 streams of 12 tokens and 12 prompts of 8, each gets every second turn."""
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(*(make_request(f"s{index}", "ab", max_tokens=12) for index in range(2)))
    driver.step()
    driver.add(*(_read(f"p{index:02}", f"prompt{index:02}") for index in range(12)))
    turns = []
    while driver.core.has_work:
        before = driver.core.statistics()
        driver.step()
        after = driver.core.statistics()
        turns.append((after.num_pooled_batches - before.num_pooled_batches, after.num_steps - before.num_steps))
    assert turns[:22] == [(1, 0), (0, 1)] * 11
    assert [len(batch) for batch in pooling.batches] == [1] * 12
    driver.assert_at_rest()


def test_alone_prompts_fill_whole_batches() -> None:
    pooling = _Recording()
    driver = _driver(pooling)
    driver.add(*(_read(f"p{index:02}", f"prompt{index:02}") for index in range(12)))
    driver.run()
    assert [len(batch) for batch in pooling.batches] == [5, 5, 2]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stream", "prompt", "prompt", "abort", "hold", "resume", "step", "step"]),
            st.integers(0, 60),
            st.integers(-2, 2),
        ),
        max_size=60,
    )
)
def test_everything_ends_exactly_once_whatever_comes_between(acts: list[tuple[str, int, int]]) -> None:
    driver = _driver(_Recording(max_input_tokens=60))
    names: list[str] = []
    for act, number, priority in acts:
        if act in ("stream", "prompt"):
            names.append(f"r{len(names)}")
            text = "x" * (number + 1)
            if act == "prompt":
                driver.add(_read(names[-1], text, priority=priority))
            else:
                driver.add(make_request(names[-1], text[:30], max_tokens=5, priority=priority))
        elif act == "step":
            driver.step()
        elif names and act == "abort":
            driver.abort(names[number % len(names)])
        elif names:
            driver.hold(names[number % len(names)], held=act == "hold")
    for name in names:
        driver.hold(name, held=False)
    driver.run()
    driver.assert_at_rest()
