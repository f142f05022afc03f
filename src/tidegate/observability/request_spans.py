"""From what is known of a request at its end to its spans.

Decides which spans there are, what they are called, and what stands in them: HTTP's and generative AI's semantic
conventions of OpenTelemetry, and our own words under `tidegate.`. Names and numbers only: no prompt, no output, no
stop string, no path, no key.

    POST /v1/chat/completions          from receipt to the last byte
      chat MODEL                       from the gate to the engine's last word
        queue                          until the engine begins with it, or it leaves the gate otherwise
        prefill                        until the first token
        decode                         until the last one
      write                            from the status to the last byte

Does not know exporters.
"""

from dataclasses import dataclass, field

from tidegate.observability.access_log import HttpEnded
from tidegate.observability.observer import RequestEnded
from tidegate.observability.redact import clean_text
from tidegate.observability.request_trace import WORK, child_span_id
from tidegate.observability.span import Span, SpanKind, TracedSpans, Value
from tidegate.observability.traced_facts import TracedReply, TracedWork

PROVIDER = "tidegate"
QUEUE, PREFILL, DECODE, WRITE = "queue", "prefill", "decode", "write"
_HEALTHY = frozenset({"stop", "length", "tool_calls", "content_filter", "read", "replayed"})
_LEAST_SERVER_ERROR = 500
_OTHER_METHOD, _NO_ROUTE = "other", "unmatched"
STARTED = "started"
"""How a wait ends that ends well."""

Attributes = dict[str, Value]


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stretch of a request, in seconds from receipt. `error` is what cut it off."""

    name: str
    start_s: float
    end_s: float
    attributes: Attributes = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SpanSite:
    """Where spans are made. `host` is this machine's name."""

    host: str


def spans_of(reply: HttpEnded, work: RequestEnded | None, site: SpanSite) -> TracedSpans | None:
    """Returns the spans of one request; None for one that is not recorded."""
    wire = reply.wire
    if wire is None:
        return None
    spans = [_server_span(reply, work, wire, site)]
    if work is not None and work.details is not None:
        spans += _work_spans(work, work.details, wire, site)
    if wire.first_byte_s is not None:
        write = _Stage(WRITE, wire.first_byte_s, reply.duration_s)
        spans.append(_span_of(write, wire.trace.span_id, wire))
    return TracedSpans(wire.trace, tuple(spans))


def _server_span(reply: HttpEnded, work: RequestEnded | None, wire: TracedReply, site: SpanSite) -> Span:
    error = _server_error(reply, work)
    peer, _, port = (None, "", "") if reply.peer is None else reply.peer.rpartition(":")
    has_route = reply.route != _NO_ROUTE
    attributes = _known(
        {
            "http.request.method": "_OTHER" if reply.method == _OTHER_METHOD else reply.method,
            "http.route": reply.route if has_route else None,
            "url.path": reply.route if has_route and "{" not in reply.route else None,
            "url.scheme": "https" if wire.is_tls else "http",
            "http.response.status_code": reply.status,
            "network.protocol.version": wire.http_version,
            "server.address": site.host,
            "server.port": wire.port,
            "client.address": peer,
            "client.port": int(port) if port.isdigit() else None,
            "user_agent.original": None if reply.user_agent is None else clean_text(reply.user_agent),
            "http.request.header.x-request-id": (reply.wire_id,),
            "tidegate.key.name": reply.key_name,
            "tidegate.error.code": reply.code if work is None or work.code is None else work.code,
            "tidegate.outcome": reply.outcome if work is None else work.outcome,
            "tidegate.replayed": reply.is_replayed or None,
            "tidegate.retries": reply.num_retries or None,
            "error.type": error,
        }
    )
    trace, start = wire.trace, wire.received_at
    end = start + reply.duration_s
    method = "HTTP" if reply.method == _OTHER_METHOD else reply.method
    name = f"{method} {reply.route}" if has_route else method
    return Span(name, trace.span_id, trace.parent_id, SpanKind.SERVER, start, end, attributes, error)


def _work_spans(work: RequestEnded, details: TracedWork, wire: TracedReply, site: SpanSite) -> list[Span]:
    work_id = child_span_id(wire.trace.span_id, WORK)
    error = _work_error(work)
    asked: dict[str, Value | None] = {
        "gen_ai.operation.name": details.operation,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": work.model,
        "gen_ai.request.stream": work.is_stream,
        "gen_ai.request.choice.count": details.num_choices if details.num_choices > 1 else None,
        "gen_ai.request.max_tokens": details.max_tokens,
        "gen_ai.request.temperature": details.temperature,
        "gen_ai.request.top_p": details.top_p,
        "gen_ai.request.top_k": details.top_k,
        "gen_ai.request.presence_penalty": details.presence_penalty,
        "gen_ai.request.frequency_penalty": details.frequency_penalty,
        "gen_ai.request.seed": details.seed,
        "gen_ai.output.type": details.output_type,
        "server.address": site.host,
        "server.port": wire.port,
        "tidegate.revision": details.revision,
        "error.type": error,
    }
    attributes = _known(asked | (_answered(work, details) if _has_started(work) else {}))
    start = wire.received_at + details.entered_s
    end = max(start, wire.received_at + _left_s(work, details))
    name = details.operation if work.model is None else f"{details.operation} {work.model}"
    outer = Span(name, work_id, wire.trace.span_id, SpanKind.INTERNAL, start, end, attributes, error)
    return [outer, *(_span_of(stage, work_id, wire) for stage in _stages(work, details))]


def _answered(work: RequestEnded, details: TracedWork) -> "dict[str, Value | None]":
    """What there is only of a request that the engine began with."""
    return {
        "gen_ai.response.id": work.request_id,
        "gen_ai.response.model": work.model,
        "gen_ai.response.finish_reasons": details.finish_reasons or None,
        "gen_ai.response.time_to_first_chunk": work.first_token_s if work.is_stream else None,
        "gen_ai.usage.input_tokens": work.num_prompt_tokens,
        "gen_ai.usage.output_tokens": work.num_completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": work.num_cached_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": details.num_reasoning_tokens or None,
    }


def _stages(work: RequestEnded, details: TracedWork) -> list[_Stage]:
    """What came after what. The stage in which the work was cut off ends with it, and says what cut it."""
    error, left_s, entered_s = _work_error(work), _left_s(work, details), details.entered_s
    gate = {} if details.admitted_s is None else {"tidegate.queue.gate_s": max(0.0, details.admitted_s - entered_s)}
    if not _has_started(work):
        outcome = error or work.outcome
        return [_Stage(QUEUE, entered_s, left_s, {"tidegate.queue.outcome": outcome, **gate}, error)]
    queue_s = work.queue_s if work.queue_s is not None else work.first_token_s
    queue_end = max(queue_s or 0.0, entered_s)
    stages = [_Stage(QUEUE, entered_s, queue_end, {"tidegate.queue.outcome": STARTED, **gate})]
    if work.first_token_s is None:
        return [*stages, _Stage(PREFILL, queue_end, left_s, error=error)]
    first_end = max(queue_end, work.first_token_s)
    stages.append(_Stage(PREFILL, queue_end, first_end))
    if details.last_token_s is not None and details.last_token_s > first_end:
        stages.append(_Stage(DECODE, first_end, details.last_token_s, error=error))
    return stages


def _has_started(work: RequestEnded) -> bool:
    return work.queue_s is not None or work.first_token_s is not None


def _left_s(work: RequestEnded, details: TracedWork) -> float:
    return work.duration_s if details.left_s is None else details.left_s


def _work_error(work: RequestEnded) -> str | None:
    return None if work.outcome in _HEALTHY else work.code or work.outcome


def _span_of(stage: _Stage, parent_id: str, wire: TracedReply) -> Span:
    start, end = wire.received_at + stage.start_s, wire.received_at + max(stage.start_s, stage.end_s)
    attributes = _known({**stage.attributes, "error.type": stage.error})
    span_id = child_span_id(parent_id, stage.name)
    return Span(stage.name, span_id, parent_id, SpanKind.INTERNAL, start, end, attributes, stage.error)


def _server_error(reply: HttpEnded, work: RequestEnded | None) -> str | None:
    """Returns what went wrong on our side; a caller's mistake and a caller that went are none of ours."""
    if reply.status is not None and reply.status >= _LEAST_SERVER_ERROR:
        return reply.code or str(reply.status)
    is_whole = work is None or work.code is None or work.outcome == "client_gone"
    return None if is_whole or work is None or reply.status != 200 else work.code


def _known(attributes: "dict[str, Value | None]") -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}
