"""What this machine, or this container, has to give: processors and memory."""

import contextlib
import os
from pathlib import Path


def usable_processors() -> int:
    """Returns how many processors this process may use, its control group's quota included."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_words("cpu.max")
    if len(quota) == 2 and quota[0] != "max":
        count = min(count, max(1, int(quota[0]) // int(quota[1])))
    return count


def available_bytes() -> int | None:
    """Returns memory that can still be taken here, or in this container; None where it cannot be read."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limit, used = _cgroup_words("memory.max"), _cgroup_words("memory.current")
    if limit and used and limit[0] != "max":
        words = _cgroup_words("memory.stat")
        statistics = dict(zip(words[::2], words[1::2], strict=False))
        # Pages of files are given back under pressure.
        found.append(int(limit[0]) - int(used[0]) + int(statistics.get("inactive_file", 0)))
    return min(found, default=None)


def _cgroup_words(name: str) -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/sys/fs/cgroup", name).read_text("ascii").split()
    return []
