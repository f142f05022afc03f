"""Numbers as people read them, and scales of drawings."""

import pytest

from tidegate.reporting.numbers import digits, spell, spell_tick_time, spell_time
from tidegate.reporting.scale import Scale, scale_from_zero, scale_of_times


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (0.00042, "s", "0.42 ms"),
        (1.5, "s", "1.50 s"),
        (0.9999, "s", "1,000 ms"),
        (1234.5, "/s", "1,234/s"),
        (0.5, "", "50.0 %"),
        (None, "s", "-"),
    ],
)
def test_numbers_are_spelled_to_be_read(value: float | None, unit: str, text: str) -> None:
    assert spell(value, unit) == text


def test_ticks_are_round_and_inside() -> None:
    assert scale_from_zero([7.3], 0, 100).ticks() == [0, 2, 4, 6, 8]
    assert [spell_tick_time(tick) for tick in scale_from_zero([0.19], 0, 1).ticks(4)] == [
        "0",
        "50 ms",
        "100 ms",
        "150 ms",
        "200 ms",
    ]
    scale = scale_of_times([0.001, 1.0], 0, 100)
    assert scale.is_log
    assert all(scale.low * 0.99 <= tick <= scale.high * 1.01 for tick in scale.ticks())
    assert not scale_of_times([1.0, 2.0], 0, 1).is_log
    assert Scale(0, 10, 0, 100).place(20) == 100
    assert scale_from_zero([], 0, 1).ticks()
    assert (digits(0), spell_time(2)) == ("0", "2.00 s")
