"""A long prompt that arrives while others stream costs each of their steps one chunk of it, by the declared prices."""

from itertools import pairwise

import pytest

from tidegate.backends.simulated import CostModel, SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

NUM_STREAMS, NUM_TOKENS, LONG = 8, 120, 4000
COST = CostModel()


def gaps_of_streams(chunk: int, *, has_long_prompt: bool) -> list[float]:
    """Returns the times between tokens of eight streams, from the first on, in seconds, sorted."""
    clock = ManualClock()
    backend = SimulatedBackend(SimulatedModel.SUCCESSOR, SimulatedShape(max_model_len=4096), elapse=clock.advance)
    limits = StepLimits(max_prefill_tokens=chunk)
    driver = CoreDriver(backend, PlainChooser(), limits=limits, clock=clock)
    driver.add(*(make_request(f"s{i}", [i] * 20, max_tokens=NUM_TOKENS) for i in range(NUM_STREAMS)))
    told: dict[str, list[float]] = {f"s{i}": [] for i in range(NUM_STREAMS)}
    for count in range(10_000):
        if not driver.core.has_work:
            break
        if count == 20 and has_long_prompt:
            driver.add(make_request("long", [9] * LONG, max_tokens=1))
        for delta in driver.step():
            if delta.request_id in told:
                told[delta.request_id] += [clock.now()] * len(delta.token_ids)
    driver.assert_at_rest()
    return sorted(later - earlier for times in told.values() for earlier, later in pairwise(times))


@pytest.mark.parametrize("chunk", [64, 256])
def test_4000_tokens_raise_the_time_between_tokens_by_one_chunk_at_most(chunk: int) -> None:
    alone, beside = (gaps_of_streams(chunk, has_long_prompt=has_long) for has_long in (False, True))
    one_chunk = COST.prefill_base_s + chunk * COST.prefill_token_s
    assert len(alone) == len(beside) == NUM_STREAMS * (NUM_TOKENS - 1)
    assert alone[-1] == pytest.approx(COST.decode_step_s)
    assert alone[-1] < beside[-1] <= alone[-1] + one_chunk + 1e-9
    assert sum(gap > alone[-1] + 1e-9 for gap in beside) >= NUM_STREAMS * min(LONG // chunk, 90), "it was read beside"
