"""The end of a server: it becomes unready, takes no more, and finishes what it has."""

from tidegate.conformance.ask import Ask, Place, Until
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.load_asks import long_body
from tidegate.conformance.checks.operator import finishes_in_a_drain, has_begun_drain
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_SCRIPT = {"pieces": ["61"], "repeat": 100, "delays_s": [0.05]}
_LONG = 800
"""Tokens: enough that a fast engine too has not written them when we look; a drained server that is done is gone."""
_TIMEOUT_S = 60
_UNREADY = Until(has_status, within_s=3.0, every_s=0.1, args={"allowed": (503,)})


def _later(name: str, path: str, place: Place, *, until: Until | None = None) -> Ask:
    return Ask(name=name, wave=1, method="GET", path=path, place=place, delay_s=1.0, until=until)


CASES: tuple[Case, ...] = (
    Case(
        id="drain.order",
        title="A server that is drained says so, takes nothing new, and finishes what runs",
        why="A deployment cuts answers off, or sends requests to a server that is about to end.",
        clauses=("tidegate:drain.order",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT, Capability.STREAMS, Capability.ADMIN, Capability.DRAIN),
        asks=(
            Ask(name="ready", method="GET", path="/readyz", place=Place.ADMIN),
            Ask(
                name="stream",
                wave=1,
                copies=3,
                body=long_body(max_tokens=_LONG, stream=True),
                script=_SCRIPT,
                is_endless=True,
            ),
            Ask(name="whole", wave=1, body=long_body(max_tokens=_LONG), script=_SCRIPT, is_endless=True),
            Ask(
                name="drain",
                wave=1,
                path="/admin/v1/drain",
                place=Place.ADMIN,
                body={"timeout_s": _TIMEOUT_S},
                delay_s=0.6,
            ),
            _later("unready", "/readyz", Place.ADMIN, until=_UNREADY),
            _later("unwell", "/health", Place.ROOT, until=_UNREADY),
            _later("alive", "/healthz", Place.ADMIN),
            Ask(name="new", wave=1, body=chat_body(max_tokens=4), delay_s=1.0, until=_UNREADY),
        ),
        expects=(
            expect(has_status, "ready", allowed=(200,)),
            expect(has_begun_drain, "drain"),
            expect(has_status, "unready", allowed=(503,)),
            expect(has_status, "unwell", allowed=(503,)),
            expect(has_status, "alive", allowed=(200,)),
            expect(
                is_refused,
                "new",
                status=503,
                codes=("server_draining",),
                kind="overloaded_error",
                may_retry=True,
            ),
            expect(finishes_in_a_drain, "drain", "stream", timeout_s=_TIMEOUT_S),
            expect(finishes_in_a_drain, "drain", "whole", timeout_s=_TIMEOUT_S),
        ),
        turn=Turn.LAST,
    ),
)
