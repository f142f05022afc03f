"""Paths and methods: what is not there, and how it is spelled."""

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.checks.body import has_value
from tidegate.conformance.checks.errors import is_told
from tidegate.conformance.checks.http_headers import allows, has_header, has_no_body
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.sturdiness import is_answered, is_like
from tidegate.conformance.probing.capability import Capability


def _odd(what: str, ask: Ask, title: str, why: str, *more: Expect, clause: str = "openai:errors.blame") -> Case:
    """A spelling of a route that a server may know or not, but must not fail on."""
    return Case(
        id=f"routes.{what}",
        title=title,
        why=why,
        clauses=tuple(dict.fromkeys((clause, "openai:errors.blame"))),
        severity=Severity.NUISANCE,
        asks=(ask,),
        expects=(expect(is_answered), *more),
    )


def _own(what: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...]) -> Case:
    """What only our contract says."""
    return Case(
        id=f"routes.{what}",
        title=title,
        why=why,
        clauses=(f"tidegate:routes.{clause}",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CONTRACT,),
        asks=asks,
        expects=expects,
    )


_SPELLINGS = (
    _odd(
        "trailing_slash",
        Ask(method="GET", path="/models/"),
        "A slash at the end of a path is answered",
        "Base URLs are often configured with a slash too many; a 5xx sends clients into repeats.",
    ),
    _odd(
        "double_slash",
        Ask(method="GET", path="//v1//models", place=Place.ROOT),
        "Slashes that stand twice are answered",
        "Joined addresses often hold `//`; a 5xx hides the mistake and is repeated.",
    ),
    _odd(
        "options",
        Ask(method="OPTIONS", path="/chat/completions"),
        "OPTIONS is answered",
        "Browsers ask with OPTIONS before every call; where it hangs or fails, no page can call.",
    ),
    _odd(
        "unknown_method",
        Ask(method="BREW", path="/models"),
        "A method that nobody knows is refused, and not served",
        "A server that takes any method as GET or POST lets caches and filters be passed by.",
        expect(has_status, allowed=(400, 403, 404, 405, 501)),
        clause="openai:http.methods",
    ),
    _odd(
        "long_path",
        Ask(method="GET", path="/models/" + "a" * 6000),
        "A path of 6 KB is answered",
        "Whoever can name a model can fell a server that fails here.",
        expect(has_status, allowed=(400, 404, 414, 431)),
        clause="openai:http.target",
    ),
    _odd(
        "encoded_dots",
        Ask(method="GET", path="/models/..%2f..%2f..%2fetc%2fpasswd"),
        "Dots and slashes that are percent-encoded lead nowhere",
        "A path that climbs reads what is not meant to be read.",
        expect(has_status, allowed=(400, 403, 404)),
        clause="openai:http.target",
    ),
    _odd(
        "bad_escape",
        Ask(method="GET", path="/models/%zz%ff%00"),
        "Percent-encodings that are none are refused",
        "A decoder that throws turns a typing error into a failure of the server.",
        expect(has_status, allowed=(400, 403, 404)),
        clause="openai:http.target",
    ),
)

_HTTP = (
    Case(
        id="routes.unknown",
        title="A path that names nothing is a 404, whatever the method",
        why="Clients find out what a server serves by its 404s; anything else looks like an outage.",
        clauses=("openai:http.target",),
        severity=Severity.BREAKS_CLIENTS,
        asks=(
            Ask(name="get", method="GET", path="/no-such-route-{marker}"),
            Ask(name="post", path="/no-such-route-{marker}", body={"model": "{model}"}),
        ),
        expects=tuple(expect(has_status, name, allowed=(404, 405)) for name in ("get", "post")),
    ),
    Case(
        id="routes.wrong_method",
        title="A known path with another method is a 405 that names the right ones",
        why="Without `Allow` a caller cannot tell a wrong method from a wrong path.",
        clauses=("openai:http.methods",),
        severity=Severity.NUISANCE,
        asks=(
            Ask(name="generating", method="GET", path="/chat/completions"),
            Ask(name="listing", path="/models", body={}),
        ),
        expects=(
            expect(has_status, "generating", allowed=(404, 405)),
            expect(has_status, "listing", allowed=(404, 405)),
            expect(allows, "generating", method="POST"),
            expect(allows, "listing", method="GET"),
        ),
    ),
    Case(
        id="routes.head",
        title="HEAD is answered as GET is, without a body",
        why="Balancers and uptime checks ask with HEAD; a body after it breaks the next answer of the connection.",
        clauses=("openai:http.methods",),
        severity=Severity.NUISANCE,
        asks=(Ask(method="HEAD", path="/models"),),
        expects=(expect(has_status, allowed=(200, 404, 405)), expect(has_no_body)),
    ),
    Case(
        id="routes.query",
        title="A query that a route does not know changes nothing",
        why="Gateways add `api-version` and the like to every call.",
        clauses=("openai:http.target",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(
            Ask(name="plain", body=chat_body(max_tokens=1)),
            Ask(name="with_query", path="/chat/completions?api-version=2024-10-21&x", body=chat_body(max_tokens=1)),
        ),
        expects=(expect(is_like, "plain", "with_query"),),
    ),
)

_OWN = (
    _own(
        "codes",
        "Unknown routes and wrong methods have their codes, and Allow is whole",
        "Clients branch on codes, not on sentences.",
        "status",
        (
            Ask(name="unknown", method="GET", path="/no-such-route"),
            Ask(name="at_root", method="GET", path="/", place=Place.ROOT),
            Ask(name="method", method="GET", path="/chat/completions"),
        ),
        (
            expect(is_told, "unknown", status=404, code="route_not_found"),
            expect(is_told, "at_root", status=404, code="route_not_found"),
            expect(is_told, "method", status=405, code="method_not_allowed"),
            expect(has_header, "method", name="allow", pattern="POST, OPTIONS"),
        ),
    ),
    _own(
        "health",
        "Both health routes are there, and say what they mean by a 200",
        "Orchestrators restart what is not alive and send nothing to what is not ready.",
        "health",
        (
            Ask(name="alive", method="GET", path="/healthz", place=Place.ROOT),
            Ask(name="ready", method="GET", path="/health", place=Place.ROOT),
        ),
        tuple(expect(has_status, name, allowed=(200,)) for name in ("alive", "ready")),
    ),
    _own(
        "no_admin",
        "What watches or changes the server is not on the public listener",
        "Any caller could drain the server, or read of other callers' requests.",
        "admin",
        tuple(
            Ask(name=name, method=method, path=path, place=Place.ROOT)
            for name, method, path in (
                ("metrics", "GET", "/metrics"),
                ("requests", "GET", "/admin/v1/requests"),
                ("engine", "GET", "/admin/v1/engine"),
                ("flush", "POST", "/admin/v1/cache/flush"),
            )
        ),
        tuple(
            expect(is_told, name, status=404, code="route_not_found")
            for name in ("metrics", "requests", "engine", "flush")
        ),
    ),
    _own(
        "contract",
        "GET /v1/contract describes the server",
        "Callers learn limits and fields there, not by failing.",
        "status",
        (Ask(method="GET", path="/contract"),),
        (expect(has_status, allowed=(200,)), expect(has_value, path=("object",), value="contract")),
    ),
)

CASES = (*_HTTP, *_SPELLINGS, *_OWN)
