"""W3C Trace Context, Level 2: `traceparent` and `tracestate` as they are read, and written for the next hop.

Decides what is well formed. What is not is None or "", never an error: a request is not refused for its tracing.
Does not know what is recorded, nor where it goes.
"""

import re
from dataclasses import dataclass

SAMPLED, RANDOM = 0x01, 0x02
"""Flags that are known: the caller records; the trace id is random. Others are not passed on."""
TRACEPARENT_CHARS = 55
MAX_STATE_MEMBERS = 32
MAX_STATE_CHARS = 512
"""What is passed on of a `tracestate`, at most."""
LONG_MEMBER_CHARS = 128
"""Members longer than this are the first to go where there is too much."""

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?")
_KEY = r"([a-z0-9][a-z0-9_*/@-]{0,255})"
_MEMBER = re.compile(_KEY + r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_NEVER = "ff"


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A caller's place in a trace. `trace_id` has 32 and `parent_id` 16 hexadecimal digits, neither all 0."""

    trace_id: str
    parent_id: str
    flags: int = 0

    @property
    def is_sampled(self) -> bool:
        """Whether the caller may have recorded its part."""
        return bool(self.flags & SAMPLED)

    @property
    def text(self) -> str:
        """The header's value, in version 00."""
        return f"00-{self.trace_id}-{self.parent_id}-{self.flags & (SAMPLED | RANDOM):02x}"


def read_traceparent(text: str | None) -> TraceParent | None:
    """Returns what a `traceparent` says; None for one that is absent or not well formed.

    Later versions may say more behind the flags; what is known of them is read.
    """
    found = None if text is None else _PARENT.fullmatch(text)
    if found is None:
        return None
    version, trace_id, parent_id, flags, rest = found.groups()
    if version == _NEVER or (version == "00" and rest is not None):
        return None
    if not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return TraceParent(trace_id, parent_id, int(flags, 16) & (SAMPLED | RANDOM))


def read_tracestate(text: str | None) -> str:
    """Returns a `tracestate` as it goes on: its members in order, without blanks; "" for one that is not well formed.

    Several headers come joined by commas. What is longer than `MAX_STATE_CHARS` loses its long members first, then
    its last ones.
    """
    if not text:
        return ""
    members = [stripped for member in text.split(",") if (stripped := member.strip(" \t"))]
    if len(members) > MAX_STATE_MEMBERS:
        return ""
    keys: set[str] = set()
    for member in members:
        found = _MEMBER.fullmatch(member)
        if found is None or found[1] in keys:
            return ""
        keys.add(found[1])
    return ",".join(_shortened(members))


def _shortened(members: list[str]) -> list[str]:
    kept = list(members)
    for member in members:
        if _num_chars(kept) <= MAX_STATE_CHARS:
            break
        if len(member) > LONG_MEMBER_CHARS:
            kept.remove(member)
    while _num_chars(kept) > MAX_STATE_CHARS:
        kept.pop()
    return kept


def _num_chars(members: list[str]) -> int:
    return sum(map(len, members)) + max(0, len(members) - 1)
