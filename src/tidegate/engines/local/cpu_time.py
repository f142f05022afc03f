"""Processor time of another process, where the system tells."""

import os
from pathlib import Path

_UTIME, _STIME = 11, 12
"""Places in /proc/PID/stat, counted behind the name in parentheses; proc_pid_stat(5)."""


def cpu_seconds(process_id: int) -> float | None:
    """Returns what the process has used so far, user and system time; None where the system does not say."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
