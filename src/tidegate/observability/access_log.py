"""The access log: one line for each request on any route, when its reply and its work have both ended.

Who called, what was asked for, how it ended, tokens and times. Never prompts, keys, paths or queries: the route is a
pattern of ours. What callers chose (ids, user agents, model names) is escaped and cut like every field of the log.
"""

from collections.abc import Callable, Sequence

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.observability.observer import RequestEnded
from tidegate.observability.traced_facts import TracedReply

FAULT_CODES = frozenset({"internal_error", "engine_lost", "engine_refused"})
"""Codes of what is wrong on our side."""
MAX_CLIENT_TEXT = 200
"""Characters of a header that are kept."""


class HttpEnded(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange as HTTP saw it.

    `outcome` is "ok", "error" or "client_gone"; the work's own outcome is more exact where there was any. `status` is
    None when none was sent. `duration_s` counts from receipt to the last byte. `peer` is the address and port at the
    other end of the connection, which may be a proxy's; `forwarded_for` is what was claimed in `X-Forwarded-For`.
    `trace_id` and `span_id` are those of `RequestTrace`;
    `wire` is for spans alone, and None where the request is not recorded.
    """

    wire_id: str
    route: str
    method: str
    status: int | None
    outcome: str
    duration_s: float
    key_name: str | None = None
    code: str | None = None
    peer: str | None = None
    forwarded_for: str | None = None
    user_agent: str | None = None
    is_replayed: bool = False
    num_retries: int = 0
    trace_id: str | None = None
    span_id: str | None = None
    wire: TracedReply | None = None


Write = Callable[[HttpEnded, RequestEnded | None], None]


def write_all(writes: Sequence[Write]) -> Write | None:
    """Returns what tells all of them, in order; None for none."""
    if len(writes) < 2:
        return writes[0] if writes else None

    def tell(reply: HttpEnded, work: RequestEnded | None) -> None:
        for write in writes:
            write(reply, work)

    return tell


def _write_nothing(_reply: HttpEnded, _work: RequestEnded | None) -> None:
    pass


class AccessRecord:
    """Brings together the two ends of one request, in whichever order they come, and writes once."""

    __slots__ = ("_is_working", "_reply", "_work", "_write")

    def __init__(self, write: Write = _write_nothing) -> None:
        self._write = write
        self._is_working = False
        self._work: RequestEnded | None = None
        self._reply: HttpEnded | None = None

    def begin_work(self) -> None:
        """From here on the record waits for `end_work` too."""
        self._is_working = True

    def end_work(self, facts: RequestEnded | None) -> None:
        """`facts` is None where the engine never knew of the request."""
        self._is_working = False
        self._work = facts
        self._write_if_whole()

    def end_reply(self, facts: HttpEnded) -> None:
        self._reply = facts
        self._write_if_whole()

    def _write_if_whole(self) -> None:
        if self._reply is not None and not self._is_working:
            self._write(self._reply, self._work)


class AccessLog:
    """Writes records: at `info`, faults of ours at `error`."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger

    def write(self, reply: HttpEnded, work: RequestEnded | None) -> None:
        fields = _of_reply(reply)
        if work is not None:
            fields |= _of_work(work, fields)
        log = self._logger.error if fields.get("code") in FAULT_CODES else self._logger.info
        log("request ended", **{name: _rounded(value) for name, value in fields.items()})


def _of_reply(reply: HttpEnded) -> dict[str, object]:
    fields = msgspec.structs.asdict(reply)
    del fields["wire"]
    return {name: value for name, value in fields.items() if value is not None}


def _of_work(work: RequestEnded, reply: dict[str, object]) -> dict[str, object]:
    """What the work knows; where both know something, the reply's word counts, except for how it ended."""
    fields = msgspec.structs.asdict(work)
    del fields["details"]
    known = {name: value for name, value in fields.items() if value is not None}
    return {name: value for name, value in known.items() if name == "outcome" or name not in reply}


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
