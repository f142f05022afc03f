"""One request at a time through the whole core."""

from dataclasses import replace

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.backend import BackendError, StepLogits
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chosen
from tidegate.core.plan import StepPlan
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AddRequest
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import StopRules
from tidegate.inference.script import Script
from tidegate.testing.core_driver import ChoiceRecord, CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request, pack_tokens

SMALL = SimulatedShape(max_model_len=32, num_blocks=16, block_tokens=4, max_sequences=4, max_step_tokens=8)
Plays = dict[tuple[str, int], list[Chosen]]


def _driver(
    shape: SimulatedShape = SMALL,
    *,
    model: SimulatedModel = SimulatedModel.SUCCESSOR,
    plays: Plays | None = None,
    limits: StepLimits | None = None,
) -> CoreDriver:
    return CoreDriver(SimulatedBackend(model, shape), PlainChooser(plays), limits=limits)


def _run(request: InferenceRequest, **kwargs) -> ChoiceRecord:  # noqa: ANN003 - those of _driver
    driver = _driver(**kwargs)
    driver.add(request)
    driver.run()
    driver.assert_at_rest()
    return driver.records[request.request_id, 0]


def test_the_successor_of_a_is_bcd() -> None:
    record = _run(make_request("r", "a", max_tokens=3))
    assert bytes(record.token_ids) == b"bcd"
    assert record.finish is EngineFinish.LENGTH
    assert record.num_prompt_tokens == [1]


def test_a_prompt_longer_than_a_step_enters_in_slices() -> None:
    driver = _driver()
    driver.add(make_request("r", "abcdefghijklmnopqrst", max_tokens=1))
    driver.run()
    assert [[len(part.token_ids) for part in plan.prefill] for plan in driver.backend.plans[:3]] == [[8], [8], [4]]
    assert [part.wants_last for plan in driver.backend.plans[:3] for part in plan.prefill] == [False, False, True]
    assert bytes(driver.records["r", 0].token_ids) == b"u"


def test_the_prompt_is_never_copied_into_the_plan() -> None:
    driver = _driver()
    driver.add(make_request("r", "abc", max_tokens=1))
    driver.step()
    assert isinstance(driver.backend.plans[0].prefill[0].token_ids, memoryview)


# request, finish, text in the error
REFUSED = [
    (make_request("r", "", max_tokens=1), "prompt is empty"),
    (make_request("r", "a" * 33, max_tokens=1), "33 tokens, more than the engine's context of 32"),
    (make_request("r", [258], max_tokens=1), "token id 258"),
    (InferenceRequest("r", b"\0\0\0\0\0", make_request("r", "a").sampling, StopRules(1)), "5 bytes"),
]


@pytest.mark.parametrize(("request_", "message"), REFUSED, ids=[case[1] for case in REFUSED])
def test_what_can_never_run_fails_at_once_and_says_why(request_: InferenceRequest, message: str) -> None:
    record = _run(request_)
    assert record.finish is EngineFinish.FAILED
    assert record.error is not None
    assert message in record.error
    assert record.num_deltas == 1


def test_a_refused_request_ends_each_of_its_choices() -> None:
    driver = _driver()
    driver.add(make_request("r", "a" * 99, num_choices=3))
    driver.run()
    assert [record.finish for record in driver.records.values()] == [EngineFinish.FAILED] * 3


def test_a_prompt_longer_than_the_whole_pool_fails_at_once() -> None:
    shape = SimulatedShape(max_model_len=100, num_blocks=3, block_tokens=4, max_sequences=2)
    driver = _driver(shape)
    assert driver.core.model.max_model_len == 12
    driver.add(make_request("long", "a" * 13), make_request("fits", "a" * 12, max_tokens=5))
    driver.run()
    assert driver.records["long", 0].finish is EngineFinish.FAILED
    assert driver.records["fits", 0].finish is EngineFinish.LENGTH
    assert driver.records["fits", 0].token_ids == []


def test_a_full_context_ends_with_length() -> None:
    record = _run(make_request("r", "a" * 30, max_tokens=9))
    assert bytes(record.token_ids) == b"bc"
    assert record.finish is EngineFinish.LENGTH


def test_an_end_token_is_given_out_and_ends_the_choice() -> None:
    record = _run(make_request("r", "a"), plays={("r", 0): [Chosen([98]), Chosen([257])]})
    assert (record.token_ids, record.finish) == ([98, 257], EngineFinish.EOS)


def test_a_stop_token_is_named() -> None:
    record = _run(make_request("r", "a", stop=StopRules(9, token_ids=(100,))))
    assert (bytes(record.token_ids), record.finish, record.stop_token) == (b"bcd", EngineFinish.STOP_TOKEN, 100)


def test_no_tokens_wanted_means_prefill_only() -> None:
    record = _run(make_request("r", "abcdefghij", max_tokens=0))
    assert (record.token_ids, record.finish, record.num_deltas) == ([], EngineFinish.LENGTH, 1)
    assert record.num_prompt_tokens == [10]


@pytest.mark.parametrize("max_scored_rows", [1, 3, 128])
@pytest.mark.parametrize("max_tokens", [0, 2])
def test_prompt_logprobs_come_once_for_each_token_the_first_without_one(max_scored_rows: int, max_tokens: int) -> None:
    request = make_request("r", "abdefghijk", max_tokens=max_tokens, num_prompt_logprobs=0)
    record = _run(request, limits=StepLimits(max_scored_rows=max_scored_rows))
    entries = record.prompt_logprobs
    assert entries[0] is None
    assert [entry.token_id for entry in entries[1:] if entry] == list(b"bdefghijk")
    assert [entry.logprob > -1 for entry in entries[1:] if entry] == [True, False, *[True] * 7]
    assert record.finish is EngineFinish.LENGTH
    assert len(record.token_ids) == max_tokens


def test_the_logprobs_of_a_prompt_of_one_token_are_one_none() -> None:
    assert _run(make_request("r", "a", num_prompt_logprobs=1)).prompt_logprobs == [None]


def test_several_tokens_in_a_step_are_all_fed_in_the_next() -> None:
    plays = {("r", 0): [Chosen([1, 2, 3]), Chosen([4]), Chosen([5, 6], finish=EngineFinish.EOS)]}
    driver = _driver(plays=plays)
    driver.add(make_request("r", "a"))
    driver.run()
    driver.assert_at_rest()
    record = driver.records["r", 0]
    assert (record.token_ids, record.finish, record.num_deltas) == ([1, 2, 3, 4, 5, 6], EngineFinish.EOS, 3)
    fed = driver.backend.plans[1].prefill[0]
    assert (fed.start, list(fed.token_ids), fed.wants_last) == (1, [1, 2, 3], True)
    assert driver.backend.plans[2].decode[0].position == 4


def test_more_tokens_than_a_step_holds_are_fed_in_slices() -> None:
    driver = _driver(plays={("r", 0): [Chosen(list(range(20))), Chosen([1], finish=EngineFinish.EOS)]})
    driver.add(make_request("r", "a", max_tokens=30))
    driver.run()
    assert [plan.num_tokens for plan in driver.backend.plans[1:4]] == [8, 8, 4]
    assert driver.records["r", 0].token_ids == [*range(20), 1]


def test_sequences_with_many_tokens_to_feed_all_move_in_each_step() -> None:
    plays = {(f"r{i}", 0): [Chosen(list(range(14))), Chosen([1], finish=EngineFinish.EOS)] for i in range(3)}
    driver = _driver(plays=plays)
    driver.add(*[make_request(f"r{i}", "a", max_tokens=30) for i in range(3)])
    driver.step()
    driver.step()
    assert [len(part.token_ids) for part in driver.backend.plans[-1].prefill] == [6, 1, 1]
    driver.run()
    driver.assert_at_rest()


def test_tokens_of_one_step_after_the_end_are_dropped_with_their_logprobs() -> None:
    logprobs = [TokenLogprob(token_id, -1.0) for token_id in range(6)]
    record = _run(
        make_request("r", "a", max_tokens=5, num_logprobs=0), plays={("r", 0): [Chosen(list(range(6)), logprobs)]}
    )
    assert (record.token_ids, record.finish) == ([0, 1, 2, 3, 4], EngineFinish.LENGTH)
    assert record.logprobs == logprobs[:5]


def test_a_chooser_that_fails_ends_that_sequence_alone() -> None:
    driver = _driver(plays={("bad", 0): [Chosen([98]), Chosen([], finish=EngineFinish.FAILED, error="no way on")]})
    driver.add(make_request("bad", "a"), make_request("good", "a", max_tokens=5))
    driver.run()
    driver.assert_at_rest()
    bad = driver.records["bad", 0]
    assert (bad.token_ids, bad.finish, bad.error) == ([98], EngineFinish.FAILED, "no way on")
    assert bytes(driver.records["good", 0].token_ids) == b"bcdef"


@pytest.mark.parametrize("can_truncate", [True, False])
def test_a_chooser_may_choose_nothing_and_be_asked_again_later(can_truncate: bool) -> None:
    shape = SimulatedShape(max_sequences=4, num_blocks=8, block_tokens=1, can_truncate=can_truncate)
    plays = {("r", 0): [Chosen([], resume_after_s=2.0), Chosen([98], resume_after_s=1.5), Chosen([99])]}
    driver = _driver(shape, plays=plays)
    start = driver.clock.now()
    driver.add(make_request("r", "a", max_tokens=2))
    assert driver.step() == []
    assert driver.core.next_wake_at(driver.clock.now()) in (start, start + 2.0)
    driver.run()
    driver.assert_at_rest()
    assert driver.records["r", 0].token_ids == [98, 99]
    assert driver.clock.now() == start + 3.5


def test_script_delays_hold_a_request_in_the_queue_and_before_its_prefill() -> None:
    driver = _driver()
    start = driver.clock.now()
    script = Script((), queue_delay_s=3.0, prefill_delay_s=2.0, num_prompt_tokens=77, num_cached_tokens=5)
    driver.add(make_request("slow", "a", max_tokens=1, script=script), make_request("quick", "a", max_tokens=1))
    driver.step()
    assert driver.records["quick", 0].finish is EngineFinish.LENGTH
    assert driver.core.statistics().num_waiting == 1
    driver.step()
    assert driver.core.next_wake_at(driver.clock.now()) == start + 3.0
    driver.clock.advance_to(start + 3.0)
    driver.step()
    assert driver.core.statistics().num_running == 1
    assert driver.core.next_wake_at(driver.clock.now()) == start + 5.0
    driver.run()
    driver.assert_at_rest()
    slow = driver.records["slow", 0]
    assert (slow.num_prompt_tokens, slow.num_cached_tokens) == ([77], 5)


def test_an_idle_core_waits_for_commands() -> None:
    core = EngineCore(SimulatedBackend(), PlainChooser())
    assert core.next_wake_at(5.0) is None
    assert core.step(5.0) == []
    assert not core.has_work


def test_a_second_request_under_a_living_id_changes_nothing() -> None:
    driver = _driver()
    driver.add(make_request("r", "a", max_tokens=3))
    driver.add(make_request("r", "z", max_tokens=3))
    driver.run()
    assert bytes(driver.records["r", 0].token_ids) == b"bcd"


def test_the_gauges_count_what_was_done() -> None:
    driver = _driver()
    driver.add(make_request("r", "abcdefghij", max_tokens=3))
    driver.step()
    gauges = driver.core.statistics()
    assert (gauges.num_running, gauges.blocks_used, gauges.blocks_free, gauges.num_step_tokens) == (1, 3, 13, 8)
    driver.run()
    gauges = driver.core.statistics()
    assert (gauges.num_steps, gauges.num_prefill_tokens, gauges.num_decode_tokens) == (4, 10, 2)
    assert (gauges.num_prompt_tokens, gauges.num_preemptions, gauges.blocks_free, gauges.blocks_cached) == (
        10,
        0,
        13,
        3,
    )


def test_a_backend_that_fails_ends_the_step() -> None:
    class Broken(SimulatedBackend):
        def execute(self, plan: StepPlan) -> StepLogits:
            raise BackendError("the device is gone")

    core = EngineCore(Broken(), PlainChooser())
    core.apply(AddRequest(make_request("r", "a")), 0.0)
    with pytest.raises(BackendError):
        core.step(0.0)


def test_a_backend_whose_step_is_smaller_than_its_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="max_step_tokens is 3"):
        EngineCore(SimulatedBackend(shape=SimulatedShape(max_sequences=4, max_step_tokens=3)), PlainChooser())


def test_prompts_are_packed_little_endian() -> None:
    assert pack_tokens([1, 258]) == b"\x01\0\0\0\x02\x01\0\0"


def test_the_first_delta_tells_how_long_the_request_waited_for_its_prefill() -> None:
    driver = _driver(replace(SMALL, max_sequences=1))
    driver.add(make_request("first", [97], max_tokens=3))
    driver.add(make_request("second", [97], max_tokens=1))
    driver.clock.advance(2.0)
    deltas = []
    for _ in range(8):
        deltas += driver.step()
        driver.clock.advance(1.0)
    waits = {delta.request_id: delta.queue_s for delta in deltas if delta.num_prompt_tokens}
    assert waits == {"first": 2.0, "second": 5.0}
