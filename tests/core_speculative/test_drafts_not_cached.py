"""Guesses that were wrong are never found by others, whenever these come."""

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.inference.sampling import StopRules
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.requests import make_request

PROMPT = "ABC!?#$ AB"
"""The successor model writes `C` and then `D`; what stood behind `ABC` before is guessed instead."""
WRONG = "!?#$"
MAX_TOKENS = 6


def _start() -> CoreDriver:
    shape = SimulatedShape(block_tokens=1, num_blocks=256, max_model_len=64)
    backend = SimulatedBackend(SimulatedModel.SUCCESSOR, shape)
    chain = SamplerChain(shape.vocab_size, backend.caps.eos_token_ids)
    return CoreDriver(backend, chain, limits=StepLimits(max_draft_tokens=4))


@pytest.mark.parametrize("num_steps", range(1, MAX_TOKENS + 2))
def test_a_prompt_that_goes_on_as_was_guessed_finds_only_what_was_said(num_steps: int) -> None:
    driver = _start()
    driver.add(make_request("first", PROMPT, max_tokens=MAX_TOKENS))
    for _ in range(num_steps):
        driver.step()
    said = bytes(driver.records["first", 0].token_ids).decode()
    driver.add(make_request("second", f"{PROMPT}C{WRONG} and more", max_tokens=2))
    driver.run()
    gauges = driver.core.statistics()
    assert gauges.num_draft_tokens > gauges.num_accepted_tokens, "nothing was guessed wrong"
    assert said == "CDEFGH"[: len(said)]
    assert driver.records["second", 0].num_cached_tokens == len(PROMPT) + (num_steps > 1)
    assert driver.records["second", 0].token_ids == list(b"fg")


def test_what_was_said_is_found_to_its_last_computed_token() -> None:
    driver = _start()
    driver.add(make_request("first", PROMPT, max_tokens=MAX_TOKENS))
    driver.run()
    driver.add(make_request("second", f"{PROMPT}CDEFGHI", max_tokens=1))
    driver.run()
    assert driver.records["second", 0].num_cached_tokens == len(PROMPT) + MAX_TOKENS - 1


def test_a_sequence_that_ends_among_wrong_guesses_leaves_none_of_them() -> None:
    """The stop token was never fed: at its place in memory stands the first guess."""
    driver = _start()
    driver.add(make_request("first", PROMPT, stop=StopRules(max_tokens=20, token_ids=(ord("D"),))))
    driver.run()
    assert driver.core.statistics().num_draft_tokens > 0
    driver.add(make_request("second", f"{PROMPT}CDEF", max_tokens=1))
    driver.run()
    assert driver.records["second", 0].num_cached_tokens == len(f"{PROMPT}C")
    assert driver.records["second", 0].token_ids == [ord("G")]
