"""Metrics of several server processes as one exposition: what each counts for itself is added up.

What describes the one engine, and the process itself, comes from the process that merges.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tidegate.observability.catalog import ENGINE

_ENGINE_NAMES = frozenset({*(metric.name for metric in ENGINE), "tidegate_pool_engine_up"}) - {
    "tidegate_stale_outputs_dropped",
    "tidegate_poison_refusals",
}
"""Facts of the engine itself, and what all server processes know of it; outputs are dropped, and requests refused, by
each of them.
"""
_ENGINE_STATE = frozenset(
    f"tidegate_{name}"
    for name in (
        *("engine_up", "engine_epoch", "engine_restarts", "engine_stalls", "kv_blocks", "kv_cache_usage_ratio"),
        "poison_suspects",
    )
)
"""What is not a count of requests or tokens: of an engine that each process counts its own part of."""
_SHARED_NAMES = frozenset({"tidegate_idempotency_entries", "tidegate_idempotency_bytes"})
"""Facts of one store, as each process last saw them: the largest is shown, not the sum."""
_OWN_PREFIX = "tidegate_"
_Key = tuple[str, frozenset[tuple[str, str]]]


class MergedMetrics:
    """Collects `own`, with the samples of other processes' expositions (text format 0.0.4) added to its own.

    `adds_engine`: each process counts its own requests in the engine, so that those are added up as well.
    """

    def __init__(self, own: CollectorRegistry, others: Iterable[str], *, adds_engine: bool = False) -> None:
        self._unsummed = _ENGINE_STATE if adds_engine else _ENGINE_NAMES
        self.registry = CollectorRegistry(auto_describe=False)
        self._own = own
        self._sums: dict[_Key, float] = {}
        self._labelled: dict[str, list[_Key]] = {}
        self._families: dict[str, Metric] = {}
        for text in others:
            for family in text_string_to_metric_families(text):
                self._add(family)
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        seen: set[str] = set()
        for family in self._own.collect():
            seen |= {family.name, family.name + "_info"}  # so is an info called in the text format
            yield self._merge(family) if self._is_summed(family) else family
        for name, family in self._families.items():
            if name not in seen:
                yield self._merge(Metric(name, family.documentation, family.type))

    def _add(self, family: Metric) -> None:
        if not self._is_summed(family):
            return
        self._families.setdefault(family.name, family)
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            if key not in self._sums:
                self._labelled.setdefault(family.name, []).append(key)
            known = self._sums.get(key, 0.0)
            self._sums[key] = max(known, sample.value) if family.name in _SHARED_NAMES else known + sample.value

    def _merge(self, own: Metric) -> Metric:
        merged = Metric(own.name, own.documentation, own.type)
        seen: set[_Key] = set()
        for sample in own.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            seen.add(key)
            merged.add_sample(sample.name, dict(sample.labels), sample.value + self._sums.get(key, 0.0))
        for key in self._labelled.get(own.name, []):
            if key not in seen:
                merged.add_sample(key[0], dict(key[1]), self._sums[key])
        return merged

    def _is_summed(self, family: Metric) -> bool:
        return family.name.startswith(_OWN_PREFIX) and family.name not in self._unsummed and family.type != "info"
