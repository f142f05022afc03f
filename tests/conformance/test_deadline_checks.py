"""What counts as too late, where an answer had to come in time."""

import pytest

from harness.exchanges import exchanged, http
from tidegate.conformance.checks.deadline import CLEARLY_S, is_out_of_time
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Exchange

NEAR_S, DEADLINE_S = 0.5, 2.0


def _after(over_s: float) -> Exchange:
    """An answer that came so much after its deadline, the way there and back not counted."""
    return exchanged(
        http(200, b'{"object": "chat.completion", "choices": []}'),
        request=b"POST / HTTP/1.1\r\nX-Deadline-Ms: 2000\r\n\r\n{}",
        duration_s=NEAR_S + DEADLINE_S + over_s,
    )


@pytest.mark.parametrize(
    ("over_s", "is_fault"), [(-1.0, False), (CLEARLY_S - 0.01, False), (CLEARLY_S + 0.01, True), (60.0, True)]
)
def test_an_answer_counts_as_late_only_where_it_clearly_is(over_s: float, is_fault: bool) -> None:
    near = exchanged(http(401, b"{}"), duration_s=NEAR_S)
    if is_fault:
        assert "after its time was over" in next(is_out_of_time(near, _after(over_s))).says
    else:
        with pytest.raises(CannotTell):
            list(is_out_of_time(near, _after(over_s)))
