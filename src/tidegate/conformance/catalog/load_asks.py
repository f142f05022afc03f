"""Asks that several areas put around their own: work that goes on for a while, probes, and looks at metrics."""

from typing import Any

from tidegate.conformance.ask import Ask, Place, Until
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.checks.load import is_at_rest, is_back_to
from tidegate.conformance.checks.whole_answer import is_whole_answer

LONG_QUESTION = "Count from 1 to 500, one number on each line, without any other words."
LONG_SCRIPT = {"pieces": ["31"], "repeat": 400, "delays_s": [0.05]}
"""Twenty seconds of digits."""
SPARE_S = 2.0
"""So much longer, besides a tenfold time, a request beside others may take before it counts as held up."""
REST_S = 10.0
BACK_S = 8.0
"""How long a server may take to notice that a client has gone: peers look every second or two."""


def long_body(max_tokens: int = 400, **fields: Any) -> dict[str, Any]:
    """Returns a chat request that a model answers at length."""
    return chat_body(LONG_QUESTION, max_tokens=max_tokens, **fields)


def probe_ask(name: str, wave: int, *, delay_s: float = 0.0, script: Any = None) -> Ask:
    """Returns a short request, whose answer shows that the server serves, and how fast."""
    return Ask(name=name, wave=wave, delay_s=delay_s, body=chat_body("Say yes.", max_tokens=4), script=script)


def metrics_ask(name: str, wave: int, *, until: Until | None = None, delay_s: float = 0.0) -> Ask:
    """Returns a look at the server's metrics."""
    return Ask(name=name, wave=wave, method="GET", path="/metrics", place=Place.METRICS, until=until, delay_s=delay_s)


def rest_ask(name: str = "before", wave: int = 0, *, within_s: float = REST_S) -> Ask:
    """Returns a look at metrics that waits for what ran before to end."""
    return metrics_ask(name, wave, until=Until(is_at_rest, within_s=within_s))


def back_ask(
    wave: int, *, within_s: float = BACK_S, name: str = "after", with_memory: bool = False, settle_s: float = 0.0
) -> Ask:
    """Returns a look at metrics that waits for them to be what they were `before`. `settle_s`: how long it waits first,
    where the work itself may not have begun yet.
    """
    check = Until(is_back_to, within_s=within_s, of=("before",), args={"with_memory": with_memory})
    return metrics_ask(name, wave, until=check, delay_s=settle_s)


def calm_ask(wave: int, name: str = "calm") -> Ask:
    """Returns a probe that is repeated until it is answered: what ran before may still refuse it."""
    return Ask(
        name=name, wave=wave, body=chat_body("Say yes.", max_tokens=4), until=Until(is_whole_answer, within_s=REST_S)
    )
