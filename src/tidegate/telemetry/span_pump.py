"""SpanPump: facts of ended requests wait here for the exporter's thread, and never the other way round.

A request's end costs the event loop one append. Spans are made and sent on a thread of its own, a batch at a time.
What does not fit is dropped and counted; an exporter that is slow, away or broken costs its spans and nothing else.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.observability.access_log import HttpEnded
from tidegate.observability.observer import RequestEnded
from tidegate.observability.request_spans import SpanSite, spans_of
from tidegate.observability.span import SpanExporter

BATCH_REQUESTS = 128

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PumpStatistics:
    """`num_waiting` is of now, the rest are totals of requests: sent, refused by the exporter, never sent."""

    num_waiting: int = 0
    num_exported: int = 0
    num_failed: int = 0
    num_dropped: int = 0


class SpanPump:
    """`start`, in the end `close`. `interval_s`: how long a batch that is not full waits."""

    def __init__(
        self,
        make_exporter: Callable[[], SpanExporter],
        site: SpanSite,
        *,
        max_requests: int,
        interval_s: float,
    ) -> None:
        self._make_exporter = make_exporter
        self._site = site
        self._max_requests = max_requests
        self._interval_s = interval_s
        self._queue: deque[tuple[HttpEnded, RequestEnded | None]] = deque()
        self._exporter: SpanExporter | None = None
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._is_closing = self._is_abandoned = False
        self._is_failing = self._is_dropping = False
        self._num_exported = self._num_failed = self._num_dropped = 0

    def start(self) -> None:
        """Begins to send. Raises what the exporter's making raises."""
        self._exporter = self._make_exporter()
        self._thread.start()

    def write(self, reply: HttpEnded, work: RequestEnded | None) -> None:
        """Takes the facts of a request at its end; see `access_log.Write`. Never blocks, never raises."""
        if reply.wire is None:
            return
        if self._is_closing or len(self._queue) >= self._max_requests:
            self._drop()
            return
        self._queue.append((reply, work))
        if len(self._queue) >= BATCH_REQUESTS:
            self._awake.set()

    def _drop(self) -> None:
        """Says once that the exporter is too slow; again only after the queue was half empty."""
        self._num_dropped += 1
        if not (self._is_dropping or self._is_closing):
            self._is_dropping = True
            _log.warning("spans are dropped: those of %d requests wait for the collector already", self._max_requests)

    def statistics(self) -> PumpStatistics:
        """Returns a snapshot."""
        return PumpStatistics(len(self._queue), self._num_exported, self._num_failed, self._num_dropped)

    def close(self, timeout_s: float) -> None:
        """Sends what waits, for so long at most; the rest is dropped and counted. Blocks. Idempotent."""
        self._is_closing = True
        self._awake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        self._is_abandoned = True
        exporter, self._exporter = self._exporter, None
        if exporter is not None:
            exporter.close()
        self._num_dropped += len(self._queue)
        self._queue.clear()

    # ---- on the thread ----

    def _run(self) -> None:
        while True:
            self._awake.wait(self._interval_s)
            self._awake.clear()
            while self._queue and not self._is_abandoned:
                self._send()
                if len(self._queue) < BATCH_REQUESTS and not self._is_closing:
                    break
            if self._is_closing:
                return

    def _send(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_REQUESTS))]
        reason = self._try_export(batch)
        if reason is None:
            self._num_exported += len(batch)
        else:
            self._num_failed += len(batch)
        if reason is not None and not self._is_failing:
            _log.warning("spans are lost: %s", reason)
        elif reason is None and self._is_failing:
            _log.info("spans arrive again")
        self._is_failing = reason is not None
        if len(self._queue) <= self._max_requests // 2:
            self._is_dropping = False

    def _try_export(self, batch: list[tuple[HttpEnded, RequestEnded | None]]) -> str | None:
        """Returns why a batch did not arrive; None when it did."""
        exporter = self._exporter
        if exporter is None:
            return "the exporter is closed"
        try:
            made = [spans_of(reply, work, self._site) for reply, work in batch]
            requests = [spans for spans in made if spans is not None]
            return exporter.export(requests)
        except Exception as fault:  # a bug in here must not end the thread
            return f"{type(fault).__name__}: {fault}"
