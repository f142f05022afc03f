"""Facts of a recorded request, as HTTP and the driver report them."""

from typing import Any

import msgspec

from tidegate.observability.access_log import HttpEnded
from tidegate.observability.observer import RequestEnded
from tidegate.observability.request_trace import RequestTrace
from tidegate.observability.traced_facts import TracedReply, TracedWork

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
RECEIVED = 1_800_000_000.0


def recorded_reply(*, is_recorded: bool = True, first_byte_s: float | None = 0.5, **fields: Any) -> HttpEnded:
    """A whole answer after two seconds."""
    trace = RequestTrace(TRACE, SPAN, PARENT, is_recorded, 1, "a=1")
    wire = TracedReply(
        trace=trace, received_at=RECEIVED, first_byte_s=first_byte_s, is_tls=False, http_version="1.1", port=8000
    )
    reply = HttpEnded(
        wire_id="mine",
        route="/v1/chat/completions",
        method="POST",
        status=200,
        outcome="ok",
        duration_s=2.0,
        peer="10.0.0.9:4000",
        wire=wire if is_recorded else None,
    )
    return msgspec.structs.replace(reply, **fields)


def recorded_work(**fields: Any) -> RequestEnded:
    """Entered at 0.1 s, queued to 0.4, first token at 0.7, last at 1.8, over at 1.9."""
    details = TracedWork(
        operation="chat",
        revision="abc",
        entered_s=0.1,
        admitted_s=0.2,
        last_token_s=1.8,
        finish_reasons=("stop",),
        num_choices=1,
        max_tokens=64,
        temperature=0.5,
    )
    work = RequestEnded(
        request_id="chatcmpl-1",
        wire_id="mine",
        route="/v1/chat/completions",
        model="m",
        outcome="stop",
        status=200,
        duration_s=1.9,
        num_prompt_tokens=10,
        num_cached_tokens=4,
        num_completion_tokens=20,
        queue_s=0.4,
        first_token_s=0.7,
        is_stream=True,
        details=details,
    )
    return msgspec.structs.replace(work, **fields)
