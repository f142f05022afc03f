"""What a scraper gets, by what it accepts."""

import pytest
from prometheus_client import CollectorRegistry, Counter

from tidegate.observability.exposition import OPENMETRICS_TYPE, TEXT_TYPE, render_metrics

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

ACCEPTS = [
    (None, TEXT_TYPE),
    ("", TEXT_TYPE),
    ("*/*", TEXT_TYPE),
    ("text/plain", TEXT_TYPE),
    (PROMETHEUS, OPENMETRICS_TYPE),
    ("Application/OpenMetrics-Text", OPENMETRICS_TYPE),
    ("text/plain, application/openmetrics-text;q=0.5", TEXT_TYPE),
    ("application/openmetrics-text;q=0", TEXT_TYPE),
    ("application/openmetrics-text;q=x", TEXT_TYPE),
    ("application/openmetrics-text; version=evil\r\n", OPENMETRICS_TYPE),
    (";;;,,,=q", TEXT_TYPE),
]


@pytest.mark.parametrize(("accept", "content_type"), ACCEPTS)
def test_the_format_follows_accept(accept: str | None, content_type: str) -> None:
    registry = CollectorRegistry()
    Counter("drops", "Drops in the sea.", registry=registry).inc()
    body, given = render_metrics(registry, accept)
    assert given == content_type
    assert b"drops_total 1.0" in body
    assert body.endswith(b"# EOF\n") == (content_type == OPENMETRICS_TYPE)
