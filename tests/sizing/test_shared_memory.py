"""What one of several engines may take of the GPUs."""

import pytest

from tidegate.sizing.shared_memory import DeviceMemory, device_share

G = 1 << 30
CASES: list[tuple[DeviceMemory | None, int, int | None]] = [
    (None, 2, None),
    (DeviceMemory(70 * G, 80 * G), 1, 70 * G),
    (DeviceMemory(70 * G, 80 * G), 2, 40 * G),
    (DeviceMemory(30 * G, 80 * G), 2, 30 * G),
    (DeviceMemory(70 * G, 80 * G), 4, 20 * G),
]


@pytest.mark.parametrize(("memory", "number", "share"), CASES)
def test_a_share_is_of_the_whole_and_no_more_than_is_free(
    memory: DeviceMemory | None, number: int, share: int | None
) -> None:
    assert device_share(memory, number) == share


def test_engines_that_start_one_after_the_other_come_to_the_same_share() -> None:
    total, taken = 80 * G, 0
    for _ in range(4):
        share = device_share(DeviceMemory(total - taken, total), 4)
        assert share == 20 * G
        taken += share
