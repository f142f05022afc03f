"""What is told of a request at its end, for metrics and logs."""

from dataclasses import dataclass

from tidegate.contract.error_table import row_of
from tidegate.errors import ServeError
from tidegate.observability.observer import RequestEnded
from tidegate.observability.traced_facts import TracedWork
from tidegate.serving.call import Call
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.usage import TokenCounts


@dataclass(slots=True)
class Story:
    """What has happened to one request. Instants are of the monotonic clock; None for what has not happened."""

    received_at: float
    entered_at: float | None = None
    """The gate was asked."""
    admitted_at: float | None = None
    """The gate let it in."""
    started_at: float | None = None
    """The engine's first word of it."""
    queue_s: float | None = None
    """From receipt to the engine's first work on it; of the prompt that waited longest."""
    first_token_at: float | None = None
    left_at: float | None = None
    """The gate and the engine hold nothing of it any more."""
    finish_reason: str | None = None
    """Of the first choice that finished."""
    error: ServeError | None = None
    cause: str | None = None
    """Why nobody reads the reply any more."""
    status: int | None = None
    """The HTTP status that was sent."""

    def since_receipt(self, at: float | None) -> float | None:
        """Returns how long after receipt an instant lies; None for one that has not come."""
        return None if at is None else at - self.received_at


def describe_end(
    call: PreparedCall,
    story: Story,
    counts: TokenCounts,
    *,
    now: float,
    was_told: bool,
    details: TracedWork | None = None,
) -> RequestEnded:
    """Returns the facts of a request that has ended on both sides; `was_told`: its client got the story's error."""
    outcome = story.cause or ("error" if story.error is not None else story.finish_reason or "error")
    return RequestEnded(
        request_id=call.context.request_id,
        wire_id=call.context.wire_id,
        route=call.context.route,
        model=call.model,
        outcome=outcome,
        status=story.status,
        duration_s=now - story.received_at,
        code=row_of(story.error).code if story.error is not None and was_told else None,
        num_prompt_tokens=counts.num_prompt,
        num_cached_tokens=counts.num_cached,
        num_completion_tokens=counts.num_completion,
        queue_s=story.queue_s,
        first_token_s=story.since_receipt(story.first_token_at),
        is_stream=call.is_stream,
        key_name=call.context.principal.log_name,
        num_retries=call.context.num_retries,
        details=details,
    )


def describe_gone(call: Call, now: float) -> RequestEnded:
    """Returns the facts of a call whose client went away while it was prepared."""
    return RequestEnded(
        request_id="",
        wire_id=call.wire_id,
        route=call.route,
        model=None,
        outcome="client_gone",
        status=None,
        duration_s=now - call.received_at,
        key_name=call.principal.log_name,
        num_retries=call.num_retries,
    )
