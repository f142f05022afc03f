"""What a running server says of itself on its admin listener: metrics, live requests, the engine's accounts."""

import json
from collections.abc import Iterable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from harness.raw_http import Answer, request

Labels = frozenset[tuple[str, str]]


class Metrics:
    """All samples of one scrape."""

    def __init__(self, page: str) -> None:
        self._samples: dict[tuple[str, Labels], float] = {}
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                self._samples[sample.name, frozenset(sample.labels.items())] = sample.value

    def value(self, name: str, **labels: str) -> float:
        """The sample of `tidegate_NAME` with exactly these labels; 0 where there is none."""
        return self._samples.get(("tidegate_" + name, frozenset(labels.items())), 0.0)

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of `tidegate_NAME` that have these labels, whatever else they have."""
        wanted = frozenset(labels.items())
        return sum(
            value for (found, has), value in self._samples.items() if found == "tidegate_" + name and wanted <= has
        )

    def since(self, earlier: "Metrics", name: str, **labels: str) -> float:
        """How much `total` has grown."""
        return self.total(name, **labels) - earlier.total(name, **labels)


def read_metrics(admin_port: int) -> Metrics:
    return Metrics(request(admin_port, "GET", "/metrics").body.decode())


def read_ready(admin_port: int) -> Answer:
    return request(admin_port, "GET", "/readyz")


def live_requests(admin_port: int) -> dict[str, dict[str, Any]]:
    """The live requests by their callers' own ids."""
    listed = request(admin_port, "GET", "/admin/v1/requests").json()["data"]
    return {live["request_id"]: live for live in listed}


def engine_state(admin_port: int) -> dict[str, Any]:
    state: dict[str, Any] = request(admin_port, "GET", "/admin/v1/engine").json()
    return state


def ended_requests(log: str | Iterable[str]) -> dict[str, dict[str, Any]]:
    """The log's records of ended requests that asked for the engine, by their callers' own ids."""
    lines = log.splitlines() if isinstance(log, str) else log
    records = [json.loads(line) for line in lines if line.startswith("{")]
    return {
        record["wire_id"]: record for record in records if record["event"] == "request ended" and "request_id" in record
    }
