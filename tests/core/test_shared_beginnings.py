"""Requests that begin alike and come at once: the beginning is computed once; who does not move makes nobody wait."""

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

BLOCK = 4
BEGINNING = "a system prompt, 40 characters long......"[:40]


def _driver(*, max_sequences: int = 8, max_step_tokens: int = 16, has_prefix_cache: bool = True) -> CoreDriver:
    shape = SimulatedShape(
        max_model_len=128,
        num_blocks=256,
        block_tokens=BLOCK,
        max_sequences=max_sequences,
        max_step_tokens=max_step_tokens,
    )
    limits = StepLimits(has_prefix_cache=has_prefix_cache)
    return CoreDriver(SimulatedBackend(SimulatedModel.HISTORY, shape), PlainChooser(), limits=limits)


def _asked(number: int, beginning: str = BEGINNING, **fields: object) -> InferenceRequest:
    """A prompt that goes on for two tokens of its own."""
    return make_request(f"r{number}", f"{beginning}{chr(65 + number)}?", max_tokens=3, **fields)  # type: ignore[arg-type]


def _num_prefilled(driver: CoreDriver) -> int:
    return driver.core.statistics().num_prefill_tokens


def test_eight_that_begin_alike_compute_their_beginning_once() -> None:
    driver = _driver()
    driver.add(*[_asked(number) for number in range(8)])
    driver.run()
    assert _num_prefilled(driver) == 40 + 8 * 2
    assert [driver.records[f"r{number}", 0].num_cached_tokens for number in range(8)] == [0] + [40] * 7
    assert {record.finish for record in driver.records.values()} == {EngineFinish.LENGTH}


def test_their_text_is_what_each_gets_alone() -> None:
    driver, alone = _driver(), _driver(has_prefix_cache=False)
    driver.add(*[_asked(number) for number in range(8)])
    driver.run()
    alone.add(*[_asked(number) for number in range(8)])
    alone.run()
    assert _num_prefilled(alone) == 8 * 42
    texts = [[made.records[f"r{number}", 0].token_ids for number in range(8)] for made in (driver, alone)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("max_sequences", "num_requests"), [(1, 3), (2, 5), (8, 20)])
def test_who_waits_keeps_place_and_row_and_all_come_to_their_end(max_sequences: int, num_requests: int) -> None:
    driver = _driver(max_sequences=max_sequences)
    driver.add(*[_asked(number) for number in range(num_requests)])
    ended: list[str] = []
    while driver.core.next_wake_at(driver.clock.now()) is not None:
        ended += [delta.request_id for delta in driver.step() if delta.finish is not None]
    assert ended == [f"r{number}" for number in range(num_requests)]
    assert _num_prefilled(driver) == 40 + 2 * num_requests


def test_other_salts_wait_for_nobody_and_find_nothing() -> None:
    driver = _driver(max_step_tokens=64)
    driver.add(_asked(0), _asked(1, cache_salt=b"other"), _asked(2))
    driver.run()
    assert [driver.records[f"r{number}", 0].num_cached_tokens for number in range(3)] == [0, 0, 40]
    assert _num_prefilled(driver) == 42 + 42 + 2


def test_a_part_in_common_is_waited_for_no_longer_than_it_takes() -> None:
    driver = _driver(max_step_tokens=8)
    driver.add(make_request("long", BEGINNING + "b" * 60, max_tokens=1))
    driver.add(make_request("short", BEGINNING[:16] + "c", max_tokens=1))
    driver.run()
    plans = driver.backend.plans
    first = next(i for i, plan in enumerate(plans) for part in plan.prefill if list(part.token_ids)[-1:] == [ord("c")])
    assert first <= 3, "two steps read the sixteen tokens in common"
    assert driver.records["short", 0].num_cached_tokens == 16


def test_nobody_waits_for_one_whose_reader_is_behind_or_whose_time_has_not_come() -> None:
    driver = _driver(max_step_tokens=8)
    driver.add(_asked(0))
    driver.step()
    driver.hold("r0", held=True)
    driver.add(_asked(1))
    driver.run()
    assert driver.records["r1", 0].finish is EngineFinish.LENGTH
    assert driver.records["r0", 0].finish is None
    driver.hold("r0", held=False)
    driver.run()
    assert driver.records["r0", 0].finish is EngineFinish.LENGTH


def test_an_abort_of_the_one_that_reads_lets_the_next_go_on_where_it_was() -> None:
    driver = _driver(max_step_tokens=8)
    driver.add(*[_asked(number) for number in range(3)])
    driver.step()
    driver.step()
    driver.abort("r0")
    driver.run()
    assert driver.records["r1", 0].num_cached_tokens == 16
    assert driver.records["r2", 0].num_cached_tokens == 40
    assert _num_prefilled(driver) == 40 + 2 * 2


def test_where_nothing_is_kept_nobody_waits() -> None:
    driver = _driver(has_prefix_cache=False, max_step_tokens=64)
    driver.add(_asked(0), _asked(1))
    driver.step()
    assert len(driver.backend.plans[-1].prefill) == 2
