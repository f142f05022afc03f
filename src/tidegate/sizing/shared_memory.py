"""What one of several engines may plan with of memory that all of them take from. Pure."""

from typing import NamedTuple


class DeviceMemory(NamedTuple):
    """Bytes of all GPUs together."""

    free: int
    total: int


def device_share(memory: DeviceMemory | None, num_sharing: int) -> int | None:
    """Returns the bytes for one of `num_sharing` engines; None where nothing is known.

    A share is of the whole, and not of what is free: engines start at the same time or one after the other, and each
    must come to the same number whether the others have taken theirs or not.
    """
    return None if memory is None else min(memory.free, memory.total // max(1, num_sharing))
