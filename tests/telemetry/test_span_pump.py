"""Facts wait for the exporter, never the other way round: what is slow, away or broken costs spans and nothing else."""

from collections.abc import Callable, Iterator

import pytest

from harness.server_thread import wait_until
from harness.traced import recorded_reply, recorded_work
from tidegate.observability.request_spans import SpanSite
from tidegate.observability.span import SpanExporter
from tidegate.telemetry.span_pump import BATCH_REQUESTS, SpanPump
from tidegate.testing.memory_exporter import MemoryExporter

MakePump = Callable[..., SpanPump]


@pytest.fixture
def exporter() -> MemoryExporter:
    return MemoryExporter()


@pytest.fixture
def make_pump(exporter: MemoryExporter) -> Iterator[MakePump]:
    pumps: list[SpanPump] = []

    def make(*, max_requests: int = 1000, interval_s: float = 0.01) -> SpanPump:
        def give() -> SpanExporter:
            return exporter

        pump = SpanPump(give, SpanSite("host"), max_requests=max_requests, interval_s=interval_s)
        pumps.append(pump)
        pump.start()
        return pump

    yield make
    exporter.gate.set()
    for pump in pumps:
        pump.close(10)


def test_what_is_written_arrives(exporter: MemoryExporter, make_pump: MakePump) -> None:
    pump = make_pump()
    pump.write(recorded_reply(), recorded_work())
    pump.write(recorded_reply(is_recorded=False), None)
    wait_until(lambda: pump.statistics().num_exported == 1, "it is exported")
    assert len(exporter.requests) == 1
    assert pump.statistics().num_waiting == 0


def test_a_full_queue_drops_and_counts_and_never_waits(
    exporter: MemoryExporter, make_pump: MakePump, caplog: pytest.LogCaptureFixture
) -> None:
    exporter.gate.clear()
    pump = make_pump(max_requests=BATCH_REQUESTS)
    pump.write(recorded_reply(), None)
    wait_until(lambda: exporter.num_exports == 1, "the exporter hangs with the first")
    for _ in range(BATCH_REQUESTS + 7):
        pump.write(recorded_reply(), None)
    assert pump.statistics().num_dropped == 7
    assert pump.statistics().num_waiting == BATCH_REQUESTS
    assert len([line for line in caplog.messages if "spans are dropped" in line]) == 1
    exporter.gate.set()
    wait_until(lambda: pump.statistics().num_exported == BATCH_REQUESTS + 1, "the rest arrives")
    exporter.gate.clear()
    for number in range(BATCH_REQUESTS + 3):
        pump.write(recorded_reply(), None)
        if not number:
            wait_until(lambda: exporter.num_exports == 3, "the exporter hangs again")
    assert len([line for line in caplog.messages if "spans are dropped" in line]) == 2, "there was room in between"


@pytest.mark.parametrize("kind", ["away", "broken"])
def test_an_exporter_that_fails_costs_its_batch_and_is_used_again(
    exporter: MemoryExporter, make_pump: MakePump, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    exporter.is_away = kind == "away"
    exporter.fault = RuntimeError("no such host") if kind == "broken" else None
    pump = make_pump()
    for number in range(1, 4):
        pump.write(recorded_reply(), None)
        wait_until(lambda: pump.statistics().num_failed == number, "it is lost")  # noqa: B023
    exporter.is_away, exporter.fault = False, None
    pump.write(recorded_reply(), None)
    wait_until(lambda: pump.statistics().num_exported == 1, "it arrives again")
    assert len([line for line in caplog.messages if "spans are lost" in line]) == 1, "said once, not for each batch"


def test_what_waits_at_the_end_is_sent(exporter: MemoryExporter, make_pump: MakePump) -> None:
    pump = make_pump(interval_s=60)
    for _ in range(3 * BATCH_REQUESTS - 1):
        pump.write(recorded_reply(), None)
    pump.close(30)
    assert len(exporter.requests) == 3 * BATCH_REQUESTS - 1
    assert exporter.is_closed
    pump.write(recorded_reply(), None)
    assert pump.statistics().num_dropped == 1


def test_every_request_of_a_batch_that_fails_is_counted(exporter: MemoryExporter, make_pump: MakePump) -> None:
    exporter.is_away = True
    pump = make_pump(interval_s=60)
    for _ in range(5):
        pump.write(recorded_reply(), None)
    pump.close(30)
    assert (exporter.num_exports, pump.statistics().num_failed) == (1, 5)


def test_the_end_does_not_wait_longer_than_it_may(exporter: MemoryExporter, make_pump: MakePump) -> None:
    exporter.gate.clear()
    pump = make_pump()
    pump.write(recorded_reply(), None)
    wait_until(lambda: exporter.num_exports == 1, "the exporter hangs")
    for _ in range(5):
        pump.write(recorded_reply(), None)
    pump.close(0.01)
    assert pump.statistics().num_dropped == 5
    pump.close(0.01)


def test_a_pump_that_never_started_closes() -> None:
    pump = SpanPump(MemoryExporter, SpanSite("host"), max_requests=2, interval_s=1)
    pump.write(recorded_reply(), None)
    pump.close(1)
    assert pump.statistics().num_dropped == 1
