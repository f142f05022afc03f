"""A registry as bytes, in the format that the scraper asked for."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_openmetrics: Callable[[CollectorRegistry], bytes] = openmetrics.generate_latest


def render_metrics(registry: CollectorRegistry, accept: str | None = None) -> tuple[bytes, str]:
    """Returns the body and its Content-Type: OpenMetrics where `accept` prefers it, the older text format otherwise."""
    if prefers_openmetrics(accept or ""):
        return _openmetrics(registry), OPENMETRICS_TYPE
    return generate_latest(registry), TEXT_TYPE


def prefers_openmetrics(accept: str) -> bool:
    """Says whether an Accept header lists OpenMetrics and no plain text with more weight (RFC 9110, 12.5.1)."""
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for item in accept.lower().split(","):
        media_type, *parameters = (part.strip() for part in item.split(";"))
        if media_type in weights:
            weights[media_type] = max(weights[media_type], _weight(parameters))
    return weights["application/openmetrics-text"] > 0 and (
        weights["application/openmetrics-text"] >= weights["text/plain"]
    )


def _weight(parameters: list[str]) -> float:
    """Returns the q value among a media range's parameters; 1 without one, 0 for nonsense."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
