"""GET /v1/contract: what it tells is what the server does."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.limit_bodies import (
    make_bias,
    make_depth,
    make_max_tokens,
    make_messages,
    make_prompts,
    make_stops,
    make_tools,
)
from tidegate.conformance.checks.self_description import (
    counts_alike,
    has_named_revision,
    has_named_version,
    is_answered_as_listed,
    is_known_error,
    is_refused_by_limit,
    lists_models,
    treats_unknown_as_listed,
)
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_WHY = "Clients and gateways that set themselves up by the page do what the server refuses."
_PAGE = Ask(name="page", method="GET", path="/contract")


def _case(what: str, title: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...], **fields: Any) -> Case:
    settings: dict[str, Any] = {"clauses": ("tidegate:contract.document",), "severity": Severity.NUISANCE, "needs": ()}
    settings |= fields
    needs = (Capability.CONTRACT, *settings.pop("needs"))
    return Case(
        id=f"contract.{what}",
        title=title,
        why=_WHY,
        profile=Profile.TIDEGATE,
        needs=needs,
        asks=(_PAGE, *asks),
        expects=expects,
        **settings,
    )


DOCUMENT: tuple[Case, ...] = (
    _case(
        "version",
        "The page and the header name one version",
        (),
        (expect(has_status, "page", allowed=(200,)), expect(has_named_version, "page")),
    ),
    _case(
        "models",
        "The page describes the models that the list has",
        (Ask(name="models", method="GET", path="/models"),),
        (expect(lists_models, "page", "models"),),
    ),
    _case(
        "revision",
        "The revision on the page is that of answers and chunks",
        (
            Ask(name="whole", wave=1, body=chat_body(max_tokens=2)),
            Ask(name="stream", wave=1, body=chat_body(max_tokens=2, stream=True)),
        ),
        (expect(has_named_revision, "page", "whole", "stream"),),
        needs=(Capability.CHAT, Capability.STREAMS),
        severity=Severity.WRONG_DATA,
    ),
    _case(
        "unknown_fields",
        "An unknown field is treated as the page says",
        (Ask(name="asked", wave=1, body=chat_body(max_tokens=2, no_such_field=1)),),
        (expect(treats_unknown_as_listed, "page", "asked", field="no_such_field"),),
        needs=(Capability.CHAT,),
    ),
    _case(
        "token_counts",
        "Tokens are counted alike by /v1/tokenize and by usage, where the page says so",
        (
            Ask(name="tokens", wave=1, path="/tokenize", body={"model": "{model}", "prompt": "Count {model} 1 2 3."}),
            Ask(name="answer", wave=1, path="/completions", body=completion_body("Count {model} 1 2 3.", max_tokens=1)),
        ),
        (expect(counts_alike, "page", "tokens", "answer"),),
        needs=(Capability.TOKENIZE, Capability.COMPLETIONS),
        severity=Severity.WRONG_BILL,
    ),
)

_ROUTES = (
    ("POST", "/chat/completions"),
    ("POST", "/completions"),
    ("POST", "/embeddings"),
    ("POST", "/score"),
    ("POST", "/rerank"),
    ("POST", "/classify"),
    ("POST", "/tokenize"),
    ("POST", "/detokenize"),
    ("POST", "/images"),
    ("GET", "/models"),
    ("GET", "/contract"),
)


def _name_of(path: str) -> str:
    return path[1:].replace("/", "_")


ROUTES: tuple[Case, ...] = (
    _case(
        "routes",
        "Routes that the page lists answer, and others of the contract do not",
        tuple(
            Ask(name=_name_of(path), wave=1, method=method, path=path, body={} if method == "POST" else None)
            for method, path in _ROUTES
        ),
        tuple(
            expect(is_answered_as_listed, "page", _name_of(path), method=method, path=f"/v1{path}")
            for method, path in _ROUTES
        ),
    ),
)

_LATE_SCRIPT = {"pieces": ["6e6f"], "queue_delay_s": 1.0}
_REFUSALS: tuple[tuple[str, Ask], ...] = (
    ("invalid_json", Ask(name="refused", raw=b'{"model": ')),
    ("invalid_value", Ask(name="refused", body=chat_body(temperature=9))),
    ("missing_field", Ask(name="refused", body={"model": "{model}"})),
    ("no_route", Ask(name="refused", path="/no/such/route", body={})),
    ("wrong_method", Ask(name="refused", method="DELETE", path="/chat/completions")),
    ("media_type", Ask(name="refused", body=chat_body(), headers={"Content-Type": "text/plain"})),
    ("not_served", Ask(name="refused", body=chat_body(store=True))),
    ("bad_key", Ask(name="refused", body=chat_body(), headers={"Idempotency-Key": ""})),
    (
        "too_late",
        Ask(name="refused", body=chat_body(max_tokens=64), headers={"X-Deadline-Ms": "1"}, script=_LATE_SCRIPT),
    ),
)

ERRORS: tuple[Case, ...] = tuple(
    _case(
        f"error_of_{name}",
        f"The error of a request ({name.replace('_', ' ')}) is listed with its status, type and advice",
        (ask,),
        (expect(is_known_error, "page", "refused"),),
        needs=(Capability.CHAT,),
    )
    for name, ask in _REFUSALS
)


def _over(name: str, make: Any, *, path: str = "/chat/completions") -> Case:
    return _case(
        f"limit_{name}",
        f"What is over the listed limit {name} is refused by that name and value",
        (Ask(name="over", wave=1, path=path, body=Derived(make, ("page",))),),
        (expect(is_refused_by_limit, "page", "over", name=name),),
        clauses=("tidegate:contract.limits",),
        needs=(Capability.COMPLETIONS,) if path == "/completions" else (Capability.CHAT,),
    )


LIMITS: tuple[Case, ...] = (
    _over("stop_strings", make_stops),
    _over("messages", make_messages),
    _over("tools", make_tools),
    _over("logit_bias_entries", make_bias),
    _over("json_depth", make_depth),
    _over("context_length", make_max_tokens),
    _over("prompts", make_prompts, path="/completions"),
)

CASES: tuple[Case, ...] = (*DOCUMENT, *ROUTES, *ERRORS, *LIMITS)
