"""Every row of the table is right, and every row is needed."""

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedShape
from tidegate.core.chooser import Chosen
from tidegate.core.sequence_status import (
    EVENT_OF_FINISH,
    TRANSITIONS,
    SequenceEvent,
    SequenceStatus,
    next_status,
)
from tidegate.errors import InternalError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.sampling import StopRules
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

# What may happen to a sequence in each status, and what it is then: written by hand from the engine's rules.
EXPECTED = {
    "waiting": {
        "admit": "prefilling",
        "exhaust": "finished_length",
        "abort": "finished_aborted",
    },
    "prefilling": {"prefill": "running", "preempt": "preempted", "abort": "finished_aborted"},
    "running": {
        "preempt": "preempted",
        "end": "finished_eos",
        "stop": "finished_stop_token",
        "exhaust": "finished_length",
        "abort": "finished_aborted",
        "fail": "finished_failed",
    },
    "preempted": {"admit": "prefilling", "abort": "finished_aborted"},
    "finished_eos": {},
    "finished_stop_token": {},
    "finished_length": {},
    "finished_aborted": {},
    "finished_failed": {},
}

ROWS = [(status, event) for status, row in TRANSITIONS.items() for event in row]


def _driver(
    *, num_blocks: int = 64, max_sequences: int = 4, plays: dict[tuple[str, int], list[Chosen]] | None = None
) -> CoreDriver:
    shape = SimulatedShape(num_blocks=num_blocks, block_tokens=4, max_sequences=max_sequences, max_step_tokens=8)
    return CoreDriver(SimulatedBackend(shape=shape), PlainChooser(plays))


def _end_by_tokens() -> None:
    driver = _driver(plays={("eos", 0): [Chosen([257])], ("failed", 0): [Chosen([], finish=EngineFinish.FAILED)]})
    driver.add(make_request("eos", "a"), make_request("failed", "a"), make_request("length", "a", max_tokens=2))
    driver.add(make_request("stop", "a", stop=StopRules(max_tokens=9, token_ids=(99,))))
    driver.run()
    assert [record.finish for record in driver.records.values()] == [
        EngineFinish.EOS,
        EngineFinish.FAILED,
        EngineFinish.LENGTH,
        EngineFinish.STOP_TOKEN,
    ]


def _abort_everywhere() -> None:
    driver = _driver(max_sequences=2)
    driver.add(
        make_request("running", "a"), make_request("prefilling", "abcdefghijklmnop"), make_request("waiting", "a")
    )
    driver.step()
    driver.step()
    for request_id in ("running", "prefilling", "waiting"):
        driver.abort(request_id)
    driver.run()
    driver.assert_at_rest()


def _preempt_and_return() -> None:
    # Two sequences that grow to 5 blocks each, in a pool of 6: the younger one loses its memory while it runs.
    driver = _driver(num_blocks=6)
    driver.add(make_request("old", "abcd", max_tokens=16), make_request("young", "abcd", max_tokens=16))
    driver.run()
    driver.assert_at_rest()
    assert driver.core.statistics().num_preemptions > 0


def _preempt_while_prefilling() -> None:
    driver = _driver(num_blocks=6, max_sequences=2)
    driver.add(make_request("held", "abcdefghijklmnop"), make_request("other", "ABCDEFGHIJKLMNOP"))
    driver.step()
    driver.hold("held", held=True)
    driver.step()
    assert driver.core.statistics().num_preemptions == 1
    driver.abort("held")
    driver.run()
    driver.assert_at_rest()


def _siblings_of_a_prefill() -> None:
    driver = _driver()
    driver.add(make_request("echo", "abc", max_tokens=0, num_choices=3))
    driver.run()
    driver.assert_at_rest()


def _play_all() -> None:
    _end_by_tokens()
    _abort_everywhere()
    _preempt_and_return()
    _preempt_while_prefilling()
    _siblings_of_a_prefill()


def test_the_table_is_the_one_that_the_rules_give() -> None:
    table = {
        status.value: {event.value: after.value for event, after in row.items()} for status, row in TRANSITIONS.items()
    }
    assert table == EXPECTED


def test_every_pair_outside_the_table_is_refused() -> None:
    for status in SequenceStatus:
        for event in SequenceEvent:
            if event not in TRANSITIONS[status]:
                with pytest.raises(InternalError):
                    next_status(status, event)


def test_every_status_can_end_and_every_one_is_reached() -> None:
    reached = {SequenceStatus.WAITING}
    while True:
        more = {after for status in reached for after in TRANSITIONS[status].values()}
        if more <= reached:
            break
        reached |= more
    assert reached == set(SequenceStatus)
    assert all(SequenceEvent.ABORT in row for row in TRANSITIONS.values() if row)
    assert set(EVENT_OF_FINISH) == set(EngineFinish)


def test_the_scenarios_pass_with_the_whole_table() -> None:
    _play_all()


@pytest.mark.parametrize(("status", "event"), ROWS, ids=lambda value: value.value)
def test_without_any_one_row_a_scenario_fails(
    status: SequenceStatus, event: SequenceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = {other: after for other, after in TRANSITIONS[status].items() if other is not event}
    monkeypatch.setitem(TRANSITIONS, status, shorter)
    with pytest.raises(InternalError):
        _play_all()
