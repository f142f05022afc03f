"""What counts as an answer that a drain let finish."""

import pytest

from harness.exchanges import exchanged, http
from tidegate.conformance.checks.operator import finishes_in_a_drain
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Ending, Exchange

DRAIN = exchanged(http(202, b'{"status":"draining"}'), sent_at_s=0.6)
BODY = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}'


def _answer(for_s: float, ending: Ending = Ending.WHOLE) -> Exchange:
    return exchanged(http(200, BODY), ending=ending, sent_at_s=0.0, duration_s=for_s)


def test_an_answer_that_is_whole_is_right_however_long_it_took() -> None:
    assert list(finishes_in_a_drain(DRAIN, _answer(70.0), timeout_s=60)) == []


def test_an_answer_that_is_cut_while_the_drain_has_time_is_a_fault() -> None:
    assert list(finishes_in_a_drain(DRAIN, _answer(60.5, Ending.CUT), timeout_s=60))


def test_an_answer_that_was_not_done_in_time_tells_nothing() -> None:
    with pytest.raises(CannotTell, match="within the 60 s that the drain was given"):
        list(finishes_in_a_drain(DRAIN, _answer(60.6, Ending.CUT), timeout_s=60))
