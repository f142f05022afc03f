"""Who may call: keys, and what is told to whoever has none."""

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.errors import has_error_object, is_json_error, is_refused, is_told
from tidegate.conformance.checks.http_headers import has_header
from tidegate.conformance.checks.secrecy import are_told_alike, is_locked, repeats_no_key
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_NONE = {"Authorization": None}
_WRONG = {"Authorization": "Bearer sk-{marker}"}
_BODY = chat_body(max_tokens=1)
_STREAM = chat_body(max_tokens=1, stream=True)

_MALFORMED = (
    ("other_scheme", "Basic {key}"),
    ("no_key", "Bearer"),
    ("blank_key", "Bearer  "),
    ("half_key", "Bearer sk"),
    ("more_after", "Bearer {key}x"),
    ("two_keys", "Bearer wrong, Bearer {key}"),
    ("quoted", 'Bearer "{key}"'),
)
_SPELLINGS = (
    ("double_slash", "GET", "//v1/models"),
    ("inner_double_slash", "GET", "/v1//models"),
    ("trailing_slash", "GET", "/v1/models/"),
    ("encoded_slash", "GET", "/v1%2fmodels"),
    ("encoded_letter", "GET", "/v1/%6dodels"),
    ("other_case", "GET", "/V1/Models"),
    ("dots", "GET", "/x/../v1/models"),
    ("here", "GET", "/v1/./models"),
    ("semicolon", "GET", "/v1/models;x=1"),
    ("query", "GET", "/v1/models?key=x"),
    ("head", "HEAD", "/v1/models"),
    ("options", "OPTIONS", "/v1/models"),
    ("generating", "POST", "//v1/chat/completions"),
    ("generating_slash", "POST", "/v1/chat/completions/"),
    ("generating_case", "POST", "/v1/Chat/Completions"),
)
_ROUTES = (
    Ask(name="models", method="GET", path="/models", headers=_NONE),
    Ask(name="model", method="GET", path="/models/{model}", headers=_NONE),
    Ask(name="chat", body=_BODY, headers=_NONE),
    Ask(name="stream", body=_STREAM, headers=_NONE),
    Ask(name="completions", path="/completions", body=completion_body(max_tokens=1), headers=_NONE),
    Ask(name="embeddings", path="/embeddings", body={"model": "{model}", "input": "a"}, headers=_NONE),
)
_OWN_ROUTES = (
    Ask(name="tokenize", path="/tokenize", body={"model": "{model}", "prompt": "a"}, headers=_NONE),
    Ask(name="detokenize", path="/detokenize", body={"model": "{model}", "tokens": [1]}, headers=_NONE),
    Ask(name="contract", method="GET", path="/contract", headers=_NONE),
    Ask(name="unknown", method="GET", path="/no-such-route", headers=_NONE),
    Ask(name="options", method="OPTIONS", path="/chat/completions", headers=_NONE),
    Ask(name="root", method="GET", path="/", place=Place.ROOT, headers=_NONE),
)


def _case(
    what: str,
    title: str,
    why: str,
    clauses: tuple[str, ...],
    asks: tuple[Ask, ...],
    expects: tuple[Expect, ...],
    severity: Severity = Severity.WRONG_BILL,
) -> Case:
    is_own = clauses[0].startswith("tidegate:")
    return Case(
        id=f"auth.{what}",
        title=title,
        why=why,
        clauses=clauses,
        severity=severity,
        profile=Profile.TIDEGATE if is_own else Profile.OPENAI,
        needs=(Capability.AUTH, Capability.CONTRACT) if is_own else (Capability.AUTH,),
        asks=asks,
        expects=expects,
    )


def _spelled(name: str, method: str, path: str) -> Ask:
    body = _BODY if method == "POST" else None
    return Ask(name=name, method=method, path=path, place=Place.ROOT, body=body, headers=_NONE)


def _on(asks: tuple[Ask, ...], expectation: Expect) -> tuple[Expect, ...]:
    return tuple(expect(expectation.check, ask.name, **expectation.args) for ask in asks)


_UNAUTHORISED = expect(is_told, status=401, code="invalid_api_key", kind="authentication_error")
_TOLD = (
    Ask(name="no_key", body=_BODY, headers=_NONE),
    Ask(name="wrong_key", body=_BODY, headers=_WRONG),
)
_MALFORMED_ASKS = tuple(Ask(name=name, body=_BODY, headers={"Authorization": value}) for name, value in _MALFORMED)
_SPELLED_ASKS = tuple(_spelled(*row) for row in _SPELLINGS)

CASES = (
    _case(
        "no_key",
        "Without a key the answer is 401",
        "Clients turn a 401 into `AuthenticationError`; anything else sends people to look for another fault.",
        ("openai:auth.status",),
        (_TOLD[0],),
        (expect(is_refused, "no_key", allowed=(401,)),),
    ),
    _case(
        "wrong_key",
        "With a wrong key the answer is 401",
        "A mistyped key is the first fault that every user meets.",
        ("openai:auth.status",),
        (_TOLD[1],),
        (expect(is_refused, "wrong_key", allowed=(401,)),),
    ),
    _case(
        "error_object",
        "A 401 has an error object, which is JSON",
        "The client's exception has no message: nobody sees what was wrong.",
        ("openai:errors.object", "openai:errors.media_type"),
        _TOLD,
        (*_on(_TOLD, expect(has_error_object)), *_on(_TOLD, expect(is_json_error))),
        Severity.NUISANCE,
    ),
    _case(
        "wrong_key_streamed",
        "With a wrong key no stream begins",
        "A 200 with an error in the stream is not seen by clients, nor by balancers.",
        ("openai:auth.status",),
        (Ask(body=_STREAM, headers=_WRONG),),
        (expect(is_refused, allowed=(401,)), expect(is_json_error)),
    ),
    _case(
        "malformed",
        "A credential that is not well formed is none",
        "A lenient reader takes half a key, or any key after the right one.",
        ("openai:auth.key", "openai:auth.status"),
        _MALFORMED_ASKS,
        _on(_MALFORMED_ASKS, expect(is_refused, allowed=(400, 401))),
    ),
    _case(
        "no_scheme",
        "A key without a scheme is no credential",
        "A client that works with this server is refused by every other.",
        ("openai:auth.key",),
        (Ask(body=_BODY, headers={"Authorization": "{key}"}),),
        (expect(is_refused, allowed=(400, 401)),),
        Severity.NUISANCE,
    ),
    _case(
        "scheme_case",
        "The scheme is read without regard to case",
        "Some HTTP libraries write `bearer`.",
        ("openai:auth.scheme",),
        (Ask(method="GET", path="/models", headers={"Authorization": "bearer {key}"}),),
        (expect(has_status, allowed=(200,)),),
        Severity.NUISANCE,
    ),
    _case(
        "challenge",
        "A 401 says which credentials would do",
        "Generic HTTP clients ask their user only where `WWW-Authenticate` stands.",
        ("openai:auth.challenge",),
        _TOLD,
        _on(_TOLD, expect(has_header, name="www-authenticate")),
        Severity.NUISANCE,
    ),
    _case(
        "routes",
        "No route of the API serves anything without a key",
        "One open route is enough to be read, or billed, by strangers.",
        ("openai:auth.key",),
        _ROUTES,
        _on(_ROUTES, expect(is_locked)),
    ),
    _case(
        "spellings",
        "No spelling of a path and no method gets past the key",
        "Servers that guard by path are open to `//`, `%2f`, another case, or HEAD.",
        ("openai:auth.key",),
        _SPELLED_ASKS,
        _on(_SPELLED_ASKS, expect(is_locked)),
    ),
    _case(
        "no_echo",
        "The key that was sent stands nowhere in the answer",
        "A key in an error message ends in logs and screenshots.",
        ("openai:auth.key",),
        (
            Ask(name="wrong_key", body=_BODY, headers=_WRONG),
            Ask(name="other_scheme", body=_BODY, headers={"Authorization": "Token {marker}"}),
            Ask(name="unknown_route", method="GET", path="/no-such-route", headers=_WRONG),
        ),
        tuple(expect(repeats_no_key, name) for name in ("wrong_key", "other_scheme", "unknown_route")),
        Severity.NUISANCE,
    ),
    _case(
        "everywhere",
        "Every route and spelling is the same 401 without a key, also those that are not there",
        "Differing answers tell strangers what the server has.",
        ("tidegate:auth.everywhere",),
        (*_ROUTES, *_OWN_ROUTES, *_SPELLED_ASKS),
        (
            *_on((*_ROUTES, *_OWN_ROUTES, *(ask for ask in _SPELLED_ASKS if ask.method != "HEAD")), _UNAUTHORISED),
            expect(has_status, "head", allowed=(401,)),
        ),
    ),
    _case(
        "health_is_open",
        "Health routes need no key",
        "Balancers have none; they would take every server out.",
        ("tidegate:auth.everywhere",),
        tuple(
            Ask(name=name, method="GET", path=path, place=Place.ROOT, headers=_NONE)
            for name, path in (("alive", "/healthz"), ("ready", "/health"))
        ),
        tuple(expect(has_status, name, allowed=(200,)) for name in ("alive", "ready")),
        Severity.BREAKS_CLIENTS,
    ),
    _case(
        "first",
        "Who has no key learns nothing of the body, the model or the route",
        "Strangers could probe for models, and have bodies parsed.",
        ("tidegate:auth.first",),
        (
            Ask(name="bad_json", raw=b"{", headers=_WRONG),
            Ask(name="media_type", body=_BODY, headers={**_WRONG, "Content-Type": "text/plain"}),
            Ask(name="unknown_model", body=chat_body(model="no-such-model"), headers=_WRONG),
            Ask(name="good", body=_BODY, headers=_WRONG),
        ),
        (
            *(
                expect(_UNAUTHORISED.check, name, **_UNAUTHORISED.args)
                for name in ("bad_json", "media_type", "unknown_model", "good")
            ),
            expect(are_told_alike, "good", "bad_json", "media_type", "unknown_model"),
        ),
    ),
)
