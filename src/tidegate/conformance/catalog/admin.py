"""The admin listener, and that nothing of it is on the public one."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived, Place, Until
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.load_asks import LONG_SCRIPT, long_body, probe_ask
from tidegate.conformance.checks.operator import (
    abort_path,
    allows,
    has_aborted,
    lists_none,
    lists_requests,
    lists_those_running,
    needs_own_credential,
    tells_load,
)
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.whole_answer import is_visibly_cut, is_whole_answer
from tidegate.conformance.probing.capability import Capability

_ACTS = ("/admin/v1/drain", "/admin/v1/cache/flush", "/admin/v1/engine/restart", "/admin/v1/requests/none/abort")
_VIEWS = ("/metrics", "/readyz", "/admin/v1/requests", "/admin/v1/engine")
_SPELLINGS = (
    "//admin/v1/drain",
    "/admin/v1/drain/",
    "/ADMIN/v1/drain",
    "/admin%2fv1/drain",
    "/%61dmin/v1/drain",
    "/v1/admin/v1/drain",
    "/v1/../admin/v1/drain",
    "/./admin/v1/drain",
)


def _case(what: str, title: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...], **fields: Any) -> Case:
    settings: dict[str, Any] = {
        "why": "Whoever reaches the service can stop it.",
        "clauses": ("tidegate:routes.admin",),
        "severity": Severity.BREAKS_CLIENTS,
        "needs": (Capability.CONTRACT,),
        "profile": Profile.TIDEGATE,
    }
    return Case(id=f"admin.{what}", title=title, asks=asks, expects=expects, **(settings | fields))


def _absent(what: str, title: str, paths: tuple[str, ...], methods: tuple[str, ...]) -> Case:
    """Each path answers 404 on the public listener, by each method, and the server serves on."""
    names = {(path, method): f"{method} {path}" for path in paths for method in methods}
    asks = tuple(
        Ask(name=name, method=method, path=path, place=Place.ROOT, body={} if method == "POST" else None)
        for (path, method), name in names.items()
    )
    return _case(
        what,
        title,
        (*asks, probe_ask("next", 1)),
        (
            *(expect(is_refused, name, status=404, codes=("route_not_found",)) for name in names.values()),
            expect(is_whole_answer, "next"),
        ),
        needs=(Capability.CHAT, Capability.CONTRACT),
    )


PUBLIC: tuple[Case, ...] = (
    _absent("public_acts", "What changes the server is not on the public listener", _ACTS, ("POST", "GET", "PUT")),
    _absent("public_views", "What watches the server is not on the public listener", _VIEWS, ("GET", "POST")),
    _absent("public_spellings", "Nor is it there under another spelling", _SPELLINGS, ("POST",)),
)


def _look(name: str, path: str, **fields: Any) -> Ask:
    return Ask(name=name, method="GET", path=path, place=Place.ADMIN, **fields)


_ADMIN: dict[str, Any] = {"needs": (Capability.ADMIN,), "severity": Severity.NUISANCE}
_CREDENTIAL_PATHS = ("/admin/v1/engine", "/admin/v1/requests")


def _running(name: str) -> Ask:
    """A stream of a second and a half."""
    return Ask(name=name, body=long_body(max_tokens=60, stream=True), script=LONG_SCRIPT | {"repeat": 30})


LISTENER: tuple[Case, ...] = (
    _case(
        "health",
        "The admin listener tells whether the server is alive and ready, without a credential",
        (
            _look("alive", "/healthz", headers={"Authorization": None}),
            _look("ready", "/readyz", headers={"Authorization": None}),
        ),
        (expect(has_status, "alive", allowed=(200,)), expect(has_status, "ready", allowed=(200,))),
        why="An orchestrator cannot tell whether to send requests.",
        clauses=("tidegate:admin.health",),
        **_ADMIN,
    ),
    _case(
        "metrics",
        "Metrics tell what runs, what is held and what was generated",
        (_look("page", "/metrics"),),
        (expect(has_status, "page", allowed=(200,)), expect(tells_load, "page")),
        why="Nobody sees that the server is full.",
        clauses=("tidegate:admin.views",),
        **_ADMIN,
    ),
    *(
        _case(
            f"credential_of_{path.rpartition('/')[2]}",
            f"{path} needs the admin credential",
            (
                _look("known", path),
                _look("without", path, headers={"Authorization": None}),
                _look("wrong", path, headers={"Authorization": "Bearer wrong"}),
            ),
            (expect(needs_own_credential, "known", "without", "wrong"),),
            clauses=("tidegate:admin.credential",),
            needs=(Capability.ADMIN,),
        )
        for path in _CREDENTIAL_PATHS
    ),
    _case(
        "live_requests",
        "Live requests are listed while they run, and not afterwards",
        (
            *(_running(name) for name in ("first", "second", "third")),
            _look("during", "/admin/v1/requests", until=Until(lists_requests, 1.0, 0.05, args={"at_least": 3})),
            _look("after", "/admin/v1/requests", wave=1, until=Until(lists_none, 5.0)),
        ),
        (expect(lists_those_running, "first", "second", "third", "during"), expect(lists_none, "after")),
        why="An operator cannot see what holds the server up.",
        clauses=("tidegate:admin.views",),
        needs=(Capability.ADMIN, Capability.CHAT, Capability.STREAMS),
        severity=Severity.NUISANCE,
        turn=Turn.ALONE,
        tries=2,
    ),
    _case(
        "abort",
        "A request that is aborted ends at once and visibly, and is no longer listed",
        (
            Ask(
                name="stream",
                body=long_body(max_tokens=900, stream=True),
                script=LONG_SCRIPT,
                last_wave=2,
            ),
            _look(
                "listed",
                "/admin/v1/requests",
                delay_s=0.5,
                until=Until(lists_requests, 1.0, 0.05, args={"at_least": 1}),
            ),
            Ask(name="abort", wave=1, path=Derived(abort_path, ("listed",)), place=Place.ADMIN, body={}),
            _look("after", "/admin/v1/requests", wave=2, until=Until(lists_none, 5.0)),
        ),
        (
            expect(has_aborted, "abort"),
            expect(is_visibly_cut, "stream", code="deadline_exceeded"),
            expect(lists_none, "after"),
        ),
        why="An operator cannot end what holds the server up.",
        clauses=("tidegate:admin.acts",),
        needs=(Capability.ADMIN, Capability.CHAT, Capability.STREAMS),
        severity=Severity.NUISANCE,
        turn=Turn.ALONE,
        tries=2,
    ),
    _case(
        "methods",
        "What changes the server does not happen by GET",
        tuple(_look(path, path) for path in _ACTS),
        (
            *(expect(is_refused, path, status=405, codes=("method_not_allowed",)) for path in _ACTS),
            *(expect(allows, path, method="POST") for path in _ACTS),
        ),
        why="A crawler or a browser's prefetch drains the server.",
        clauses=("tidegate:admin.acts",),
        **_ADMIN,
    ),
    _case(
        "unknown_member",
        "An act with an unknown member is refused, and nothing happens",
        (
            *(Ask(name=path, path=path, place=Place.ADMIN, body={"no_such_member": 1}) for path in _ACTS[:3]),
            _look("ready", "/readyz", wave=1),
            Ask(name="next", wave=1, body=chat_body(max_tokens=2)),
        ),
        (
            *(expect(is_refused, path, status=400, codes=("unknown_parameter",)) for path in _ACTS[:3]),
            expect(has_status, "ready", allowed=(200,)),
            expect(is_whole_answer, "next"),
        ),
        why="A misspelt timeout drains the server at once.",
        clauses=("tidegate:admin.acts",),
        needs=(Capability.ADMIN, Capability.CHAT),
        severity=Severity.NUISANCE,
    ),
    _case(
        "unknown_request",
        "To abort what does not run is 404",
        (Ask(path="/admin/v1/requests/no-such-request/abort", place=Place.ADMIN, body={}),),
        (expect(has_status, allowed=(404,)),),
        why="An operator believes to have ended what still runs.",
        clauses=("tidegate:admin.acts",),
        **_ADMIN,
    ),
)

CASES: tuple[Case, ...] = (*PUBLIC, *LISTENER)
