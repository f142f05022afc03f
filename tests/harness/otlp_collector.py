"""A small collector of OTLP over HTTP: takes what an exporter posts, and reads it with OpenTelemetry's own messages."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class GotSpan:
    """One span as it came. Ids are hexadecimal digits; `parent` is "" for a root."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    start_ns: int
    end_ns: int
    status: int
    state: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


class OtlpCollector:
    """Used as a context manager. `status` is what it answers, once `gate` is open; `headers` and `paths` are those of
    all posts. `port` 0: any.
    """

    def __init__(self, status: int = 200, answer_headers: dict[str, str] | None = None, port: int = 0) -> None:
        self.status = status
        self.gate = threading.Event()
        self.gate.set()
        self.spans: list[GotSpan] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.gate.wait(60)
                collector.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                for name, value in (answer_headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="collector")

    def __enter__(self) -> "OtlpCollector":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.paths.append(path)
        self.headers.append(headers)
        if self.status >= 400:
            return
        raw = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.bodies.append(raw)
        for group in ExportTraceServiceRequest.FromString(raw).resource_spans:
            resource = _attributes(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_read(span, resource) for span in scope.spans]

    def of(self, trace_id: str) -> list[GotSpan]:
        """Returns the spans of one trace."""
        return [span for span in self.spans if span.trace_id == trace_id]


def _read(span: Any, resource: dict[str, Any]) -> GotSpan:
    return GotSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=span.status.code,
        state=span.trace_state,
        attributes=_attributes(span.attributes),
        resource=resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
