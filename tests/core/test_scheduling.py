"""Several requests at once: order, sharing of steps, choices, preemption, holds, aborts."""

from dataclasses import replace

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chosen
from tidegate.core.plan import KvShare
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

SAMPLED = SamplingParams(temperature=1.0, seed=3)


def _driver(
    *,
    num_blocks: int = 64,
    max_sequences: int = 4,
    max_step_tokens: int = 16,
    can_share: bool = True,
    limits: StepLimits | None = None,
    plays: dict[tuple[str, int], list[Chosen]] | None = None,
) -> CoreDriver:
    shape = SimulatedShape(
        max_model_len=64,
        num_blocks=num_blocks,
        block_tokens=4,
        max_sequences=max_sequences,
        max_step_tokens=max_step_tokens,
        can_share=can_share,
    )
    # What others leave in memory would change who finds room.
    alone = replace(limits or StepLimits(), has_prefix_cache=False)
    return CoreDriver(SimulatedBackend(SimulatedModel.HISTORY, shape), PlainChooser(plays), limits=alone)


def _alone(request: InferenceRequest) -> list[list[int]]:
    """Returns what the request's choices get in an engine of their own, each prefilled by itself."""
    driver = _driver(can_share=False)
    driver.add(request)
    driver.run()
    return [driver.records[request.request_id, choice].token_ids for choice in range(request.num_choices)]


def _tokens_of(driver: CoreDriver, request: InferenceRequest) -> list[list[int]]:
    return [driver.records[request.request_id, choice].token_ids for choice in range(request.num_choices)]


def _active_ids(driver: CoreDriver) -> list[str]:
    return [sequence.live.request.request_id for sequence in driver.core._scheduler.roster.active]


def test_a_long_prompt_never_stalls_a_running_stream() -> None:
    driver = _driver(limits=StepLimits(max_prefill_tokens=5))
    driver.add(make_request("stream", "a", max_tokens=20))
    driver.step()
    driver.add(make_request("long", "b" * 40, max_tokens=1))
    for _ in range(8):
        before = len(driver.records["stream", 0].token_ids)
        driver.step()
        assert len(driver.records["stream", 0].token_ids) == before + 1
        assert driver.backend.plans[-1].num_tokens == 6
    assert driver.records["long", 0].finish is EngineFinish.LENGTH


def test_a_short_prompt_does_not_wait_for_a_long_one_before_it() -> None:
    driver = _driver()
    driver.add(make_request("long", "b" * 40, max_tokens=1), make_request("short", "abc", max_tokens=1))
    driver.step()
    assert driver.records["short", 0].finish is EngineFinish.LENGTH
    assert driver.records["long", 0].finish is None


def test_admission_follows_priority_then_arrival() -> None:
    driver = _driver(max_sequences=1)
    for request_id, priority in [("first", 0), ("late", 5), ("second", 0), ("urgent", -5)]:
        driver.add(make_request(request_id, "ab", max_tokens=1, priority=priority))
    ended = []
    while driver.core.next_wake_at(0.0) is not None:
        ended += [delta.request_id for delta in driver.step()]
    assert ended == ["urgent", "first", "second", "late"]


def test_nothing_passes_a_waiting_request_that_lacks_blocks() -> None:
    driver = _driver(num_blocks=8)
    driver.add(make_request("running", "a" * 20, max_tokens=4))
    driver.step()
    driver.add(make_request("large", "b" * 20, max_tokens=1), make_request("small", "c", max_tokens=1))
    driver.step()
    driver.step()
    assert driver.core.statistics().num_waiting == 2
    driver.run()
    driver.assert_at_rest()


@pytest.mark.parametrize("num_blocks", [6, 7, 9, 12])
def test_preemption_changes_no_token_and_gives_none_twice(num_blocks: int) -> None:
    requests = [make_request(f"r{i}", "abcde"[i:], max_tokens=12, sampling=SAMPLED) for i in range(4)]
    driver = _driver(num_blocks=num_blocks)
    driver.add(*requests)
    driver.run()
    driver.assert_at_rest()
    assert driver.core.statistics().num_preemptions > 0
    for request in requests:
        assert _tokens_of(driver, request) == _alone(request)


def test_the_victim_is_the_newest_of_the_lowest_priority() -> None:
    driver = _driver(num_blocks=5)
    for request_id, priority in [("low", 5), ("old", 0), ("new", 0)]:
        driver.add(make_request(request_id, "abcd", max_tokens=9, priority=priority))
    order, victims = [], []
    while driver.core.next_wake_at(0.0) is not None:
        active = _active_ids(driver)
        order += [delta.request_id for delta in driver.step() if delta.finish is not None]
        victims += [request_id for request_id in active if request_id not in [*_active_ids(driver), *order]]
    assert order == ["old", "new", "low"]
    assert victims[:2] == ["low", "new"]


def test_a_held_request_loses_its_memory_before_one_that_runs() -> None:
    driver = _driver(num_blocks=3)
    driver.add(make_request("held", "abcd", max_tokens=9), make_request("running", "abcd", max_tokens=9))
    driver.step()
    driver.hold("held", held=True)
    for _ in range(6):
        driver.step()
    assert driver.core.statistics().num_preemptions == 1
    assert _active_ids(driver) == ["running"]
    driver.hold("held", held=False)
    driver.run()
    driver.assert_at_rest()


def test_a_newcomer_waits_while_it_would_take_the_last_blocks_of_those_who_run() -> None:
    driver = _driver(num_blocks=9)
    driver.add(*[make_request(f"r{i}", "abcd", max_tokens=9) for i in range(3)])
    driver.step()
    driver.add(make_request("new", "a" * 8, max_tokens=9))
    driver.run()
    driver.assert_at_rest()
    assert driver.core.statistics().num_preemptions == 0


def test_prompt_logprobs_are_given_once_in_spite_of_preemption() -> None:
    request = make_request("echo", "abcdefghij", max_tokens=8, num_prompt_logprobs=0)
    driver = _driver(num_blocks=9, max_step_tokens=4)
    driver.add(make_request("stream", "a", max_tokens=3))
    driver.step()
    driver.add(request)
    driver.step()
    driver.step()
    assert len(driver.records["echo", 0].prompt_logprobs) == 7
    driver.hold("echo", held=True)
    driver.add(make_request("other", "a" * 30, max_tokens=1))
    driver.step()
    assert driver.core.statistics().num_preemptions == 1
    driver.hold("echo", held=False)
    driver.run()
    driver.assert_at_rest()
    whole = _driver()
    whole.add(request)
    whole.run()
    entries = driver.records["echo", 0].prompt_logprobs
    assert [entry and entry.token_id for entry in entries] == [None, *b"bcdefghij"]
    assert entries == whole.records["echo", 0].prompt_logprobs


def test_choices_share_one_prefill_and_draw_from_one_row() -> None:
    request = make_request("n", "abcdefg", num_choices=4, max_tokens=6, sampling=SAMPLED)
    driver = _driver()
    driver.add(request)
    driver.step()
    assert all(len(record.token_ids) == 1 for record in driver.records.values())
    driver.run()
    driver.assert_at_rest()
    assert driver.core.statistics().num_prefill_tokens == 7
    assert driver.core.statistics().num_prompt_tokens == 7
    tokens = _tokens_of(driver, request)
    assert len({tuple(ids) for ids in tokens}) == 4
    assert tokens == _alone(request)
    assert driver.records["n", 0].num_prompt_tokens == [7]
    assert driver.records["n", 1].num_prompt_tokens == []


@pytest.mark.parametrize("can_share", [True, False])
def test_more_choices_than_rows_run_in_waves(can_share: bool) -> None:
    request = make_request("n", "abcdefg", num_choices=11, max_tokens=3, sampling=SAMPLED)
    driver = _driver(can_share=can_share)
    driver.add(request, make_request("next", "a", max_tokens=1))
    driver.run()
    driver.assert_at_rest()
    assert _tokens_of(driver, request) == _alone(request)


def test_a_late_choice_shares_the_prompt_of_a_sibling_that_still_runs() -> None:
    request = make_request("n", "abcdefg", num_choices=3, max_tokens=9)
    plays = {("n", 1): [Chosen([1], finish=EngineFinish.EOS)]}
    driver = _driver(max_sequences=2, plays=plays)
    driver.add(request)
    driver.run()
    driver.assert_at_rest()
    shares = [move for plan in driver.backend.plans for move in plan.moves if isinstance(move, KvShare)]
    assert [share.length for share in shares] == [7, 6]
    assert driver.core.statistics().num_prefill_tokens == 8
    assert driver.records["n", 2].token_ids == driver.records["n", 0].token_ids


def test_rows_that_choices_will_need_are_not_given_to_requests_behind() -> None:
    driver = _driver(max_step_tokens=8)
    driver.add(make_request("n", "a" * 20, num_choices=3, max_tokens=2), make_request("one", "b", max_tokens=9))
    driver.add(make_request("two", "c", max_tokens=9))
    driver.step()
    gauges = driver.core.statistics()
    assert (gauges.num_running, gauges.num_waiting) == (2, 3)
    driver.run()
    driver.assert_at_rest()
    assert driver.core.statistics().num_prefill_tokens == 22


def test_choices_without_output_end_once_where_nothing_can_be_shared() -> None:
    driver = _driver(can_share=False)
    driver.add(make_request("n", "abcdefg", num_choices=9, max_tokens=0))
    driver.run()
    driver.assert_at_rest()


def test_choices_without_output_end_with_the_one_prefill() -> None:
    driver = _driver()
    driver.add(make_request("n", "abcdefg", num_choices=9, max_tokens=0, num_prompt_logprobs=0))
    driver.run()
    driver.assert_at_rest()
    assert {record.finish for record in driver.records.values()} == {EngineFinish.LENGTH}
    assert driver.core.statistics().num_prefill_tokens == 7
    assert [len(record.prompt_logprobs) for record in driver.records.values()] == [7, *[0] * 8]


def test_a_held_request_is_not_scheduled_and_goes_on_with_the_same_tokens() -> None:
    request = make_request("held", "abc", max_tokens=10, sampling=SAMPLED)
    driver = _driver()
    driver.add(request, make_request("other", "b", max_tokens=12))
    driver.step()
    driver.step()
    driver.hold("held", held=True)
    driver.run()
    assert driver.records["other", 0].finish is EngineFinish.LENGTH
    assert len(driver.records["held", 0].token_ids) == 2
    assert driver.core.statistics().num_held == 1
    driver.hold("held", held=False)
    driver.run()
    driver.assert_at_rest()
    assert _tokens_of(driver, request) == _alone(request)


def test_held_requests_lose_their_memory_to_those_who_wait() -> None:
    held = [make_request(f"held{i}", "abc", max_tokens=10, sampling=SAMPLED) for i in range(4)]
    driver = _driver()
    driver.add(*held)
    driver.step()
    for request in held:
        driver.hold(request.request_id, held=True)
    driver.add(make_request("fresh", "b", max_tokens=3))
    driver.run()
    assert driver.records["fresh", 0].finish is EngineFinish.LENGTH
    gauges = driver.core.statistics()
    assert (gauges.num_preemptions, gauges.num_held) == (1, 4)
    for request in held:
        driver.hold(request.request_id, held=False)
    driver.run()
    driver.assert_at_rest()
    for request in held:
        assert _tokens_of(driver, request) == _alone(request)


def test_a_request_held_in_the_queue_lets_others_pass() -> None:
    driver = _driver(max_sequences=1)
    driver.add(make_request("running", "a", max_tokens=3), make_request("held", "b"), make_request("next", "c"))
    driver.hold("held", held=True)
    driver.hold("held", held=True)
    driver.run()
    assert driver.records["next", 0].finish is EngineFinish.LENGTH
    assert driver.records["held", 0].token_ids == []
    driver.hold("held", held=False)
    driver.run()
    driver.assert_at_rest()


def _waiting(driver: CoreDriver) -> None:
    """Nothing: the request stays in the queue."""


def _prefilling(driver: CoreDriver) -> None:
    driver.step()


def _running(driver: CoreDriver) -> None:
    for _ in range(4):
        driver.step()


def _held(driver: CoreDriver) -> None:
    _running(driver)
    driver.hold("r", held=True)


def _preempted(driver: CoreDriver) -> None:
    _held(driver)
    driver.add(make_request("intruder", "a" * 60, max_tokens=1))
    driver.step()
    assert driver.core.statistics().num_preemptions > 0


@pytest.mark.parametrize("reach", [_waiting, _prefilling, _running, _held, _preempted])
@pytest.mark.parametrize("choices", [[None], [0], [1], [2, 0], [0, 1, 2], [None, None]])
def test_an_abort_in_any_state_frees_all_by_the_next_step(reach, choices: list[int | None]) -> None:  # noqa: ANN001
    driver = _driver(num_blocks=16)
    driver.add(make_request("r", "abcdefghijklmnopqrst", num_choices=3, max_tokens=30, sampling=SAMPLED))
    reach(driver)
    for choice in choices:
        driver.abort("r", choice)
    driver.step()
    wanted = {0, 1, 2} if None in choices else set(choices)
    for choice in range(3):
        expected = EngineFinish.ABORTED if choice in wanted else None
        assert driver.records["r", choice].finish is expected
    driver.hold("r", held=False)
    driver.run()
    driver.assert_at_rest()
    assert driver.backend._inner.cache.num_used_cells == 0  # type: ignore[attr-defined]


def test_aborts_and_holds_of_the_unknown_are_ignored() -> None:
    driver = _driver()
    driver.abort("nobody")
    driver.hold("nobody", held=True)
    driver.add(make_request("r", "a", max_tokens=1))
    driver.abort("r", 7)
    driver.run()
    driver.abort("r")
    driver.run()
    driver.assert_at_rest()
