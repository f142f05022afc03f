"""Sample: what became of one request, as instants and counts. Pure."""

from dataclasses import dataclass, field
from enum import Enum


class Ending(Enum):
    """How a request ended, where no status of the server says it. The value is the kind in reports."""

    DONE = "done"
    UNFINISHED = "unfinished"
    """The run ended before it: no fault of the server's."""
    NO_CONNECTION = "no_connection"
    CUT = "stream_cut"
    GARBAGE = "garbage"
    STREAM_ERROR = "stream_error"
    TIMEOUT = "timeout"
    TOO_LONG = "too_long"
    NOT_STREAMED = "not_streamed"
    BROKE_SCHEMA = "broke_schema"
    NOT_SENT = "not_sent"


MEANINGS: dict[str, str] = {
    "no_connection": "the server could not be reached, or closed the connection before it answered",
    "stream_cut": "the stream ended before the answer did",
    "garbage": "what came was not HTTP, not an event stream, or not JSON of this API",
    "stream_error": "an error came as an event of a stream that had begun",
    "timeout": "the answer took longer than --timeout",
    "too_long": "more came than is read of one answer",
    "not_streamed": "the answer came whole although a stream was asked for",
    "broke_schema": "an answer that ended by itself does not keep its JSON Schema",
    "not_sent": "at its time, --max-in-flight requests were still running",
}


@dataclass(slots=True, kw_only=True)
class Sample:
    """Instants are of one monotonic clock. `due_at`: when it was to be sent; times of an open loop count from there.

    `token_at`: when each piece of text came. `num_tokens`: as `usage` says, else the number of pieces
    (`is_counted_by_server`).
    """

    group: str
    due_at: float
    sent_at: float
    ended_at: float = 0.0
    ending: str = Ending.UNFINISHED.value
    detail: str = ""
    token_at: list[float] = field(default_factory=list)
    num_tokens: int = 0
    num_prompt_tokens: int | None = None
    num_cached_tokens: int | None = None
    is_counted_by_server: bool = False
    finish_reason: str | None = None

    @property
    def is_done(self) -> bool:
        return self.ending == Ending.DONE.value

    @property
    def is_error(self) -> bool:
        return self.ending not in (Ending.DONE.value, Ending.UNFINISHED.value)

    @property
    def ttft_s(self) -> float | None:
        """Time to the first piece of text; None where none came."""
        return self.token_at[0] - self.due_at if self.token_at else None

    @property
    def gaps_s(self) -> list[float]:
        """Times between pieces of text."""
        return [after - before for before, after in zip(self.token_at, self.token_at[1:], strict=False)]

    @property
    def tpot_s(self) -> float | None:
        """Mean time for each token behind the first; None where there are none."""
        num_behind = self.num_tokens - 1
        return (self.token_at[-1] - self.token_at[0]) / num_behind if num_behind > 0 and self.token_at else None

    @property
    def e2e_s(self) -> float:
        """Time to the end of the answer."""
        return self.ended_at - self.due_at
