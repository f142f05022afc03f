"""Whether what `GET /v1/contract` tells is what the server does."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.refusal import has_error_object
from tidegate.conformance.verdict import CannotTell, Fault, Refused
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def has_named_version(exchange: Exchange) -> Iterator[Fault]:
    """The version in the document is that of the `Tidegate-Contract` header, `1.MINOR`."""
    told, header = at(exchange.json, "contract"), exchange.headers.get("tidegate-contract")
    if told != header:
        yield Fault(f"the document says contract {told!r}, the header {header!r}")
    if not (isinstance(told, str) and told.startswith("1.") and told[2:].isdigit()):
        yield Fault(f"contract is {told!r}, expected 1.MINOR")


def lists_models(page: Exchange, models: Exchange) -> Iterator[Fault]:
    """The models and aliases of the document are those of the list of models."""
    described: set[Any] = set()
    entries = at(page.json, "models")
    for model in entries if isinstance(entries, list) else []:
        aliases = at(model, "aliases")
        described |= {at(model, "id"), *(aliases if isinstance(aliases, list) else [])}
    data = at(models.json, "data")
    listed = {at(entry, "id") for entry in (data if isinstance(data, list) else [])}
    if described != listed:
        yield Fault(f"the document describes {sorted(map(str, described))}, the list has {sorted(map(str, listed))}")


def has_named_revision(page: Exchange, whole: Exchange, stream: Exchange) -> Iterator[Fault]:
    """The revision on the page is in `Tidegate-Served-Revision` and, as system_fingerprint, in answers and chunks."""
    revision = at(page.json, "models", 0, "revision")
    if not isinstance(revision, str) or not revision:
        yield Fault(f"models[0].revision is {revision!r}")
        return
    for exchange in (whole, stream):
        header = exchange.headers.get("tidegate-served-revision", "")
        if revision not in header:
            yield Fault(f"Tidegate-Served-Revision is {header!r}, the document says {revision!r}", ask=exchange.ask)
        for body in exchange.chunks if exchange.is_stream else (exchange.json,):
            if revision not in str(at(body, "system_fingerprint")):
                yield Fault(f"system_fingerprint is {at(body, 'system_fingerprint')!r}", ask=exchange.ask)
                break


def is_answered_as_listed(page: Exchange, asked: Exchange, *, method: str, path: str) -> Iterator[Fault]:
    """A listed route answers, with anything but 404 and 405; one that is not listed is 404."""
    routes = at(page.json, "routes")
    known = routes if isinstance(routes, list) else []
    is_listed = any(at(route, "method") == method and at(route, "path") == path for route in known)
    if is_listed and asked.status in (None, 404, 405, 500, 501):
        yield Fault(f"{method} {path} is listed and answers {asked.status}", ask=asked.ask)
    if not is_listed and asked.status != 404:
        yield Fault(f"{method} {path} is not listed and answers {asked.status}", ask=asked.ask)


def is_refused_by_limit(page: Exchange, over: Exchange, *, name: str) -> Iterator[Fault]:
    """What is over the named limit is refused with the listed code, and `error.limit` has the listed name, value and
    scope.
    """
    described = at(page.json, "limits", name)
    if described is MISSING or at(described, "enforced") is not True:
        raise Refused(f"the contract page says that the limit {name} is not enforced")
    if over.status is None or over.status == 200:
        yield Fault(f"status {over.status} for a request over the limit {name}", ask=over.ask)
        return
    for fault in has_error_object(over):
        yield Fault(fault.says, ask=over.ask)
    if at(over.json, "error", "code") != at(described, "code"):
        yield Fault(f"code {at(over.json, 'error', 'code')!r}, listed {at(described, 'code')!r}", ask=over.ask)
    fired = at(over.json, "error", "limit")
    for member, wanted in (("name", name), ("value", at(described, "value")), ("scope", at(described, "scope"))):
        if at(fired, member) != wanted:
            yield Fault(f"error.limit.{member} is {at(fired, member)!r}, listed {wanted!r}", ask=over.ask)
    actual, value = at(fired, "actual"), at(described, "value")
    if not isinstance(actual, int) or not isinstance(value, int) or actual <= value:
        yield Fault(f"error.limit.actual is {actual!r}, with a limit of {value!r}", ask=over.ask)


def is_known_error(page: Exchange, refused: Exchange) -> Iterator[Fault]:
    """The error's code is listed, with this status, this type, and this advice on coming again. Raises CannotTell where
    the request was answered: whether it may be is for other cases.
    """
    if refused.status == 200:
        raise CannotTell("the request was answered, not refused")
    code = at(refused.json, "error", "code")
    listed = at(page.json, "errors", code) if isinstance(code, str) else MISSING
    if listed is MISSING:
        yield Fault(f"code {code!r} is not listed", ask=refused.ask)
        return
    for what, told, found in (
        ("status", at(listed, "status"), refused.status),
        ("type", at(listed, "type"), at(refused.json, "error", "type")),
    ):
        if told != found:
            yield Fault(f"{code}: {what} {found!r}, listed {told!r}", ask=refused.ask)
    advice, header = at(listed, "retry"), refused.headers.get("x-should-retry")
    if (advice == "never") != (header == "false"):
        yield Fault(f"{code}: X-Should-Retry is {header!r}, listed retry {advice!r}", ask=refused.ask)


def treats_unknown_as_listed(page: Exchange, asked: Exchange, *, field: str) -> Iterator[Fault]:
    """An unknown body field is reported, refused or passed over, as the document says."""
    policy = at(page.json, "unknown_fields", "policy")
    ignored = asked.headers.get("tidegate-ignored-fields", "")
    if policy == "reject":
        if asked.status != 400 or at(asked.json, "error", "code") != "unknown_parameter":
            yield Fault(f"policy reject, but status {asked.status}", ask=asked.ask)
    elif asked.status != 200:
        yield Fault(f"policy {policy}, but status {asked.status}", ask=asked.ask)
    elif (policy == "report") != (field in ignored):
        yield Fault(f"policy {policy}, and Tidegate-Ignored-Fields is {ignored!r}", ask=asked.ask)


def counts_alike(page: Exchange, tokens: Exchange, answer: Exchange) -> Iterator[Fault]:
    """Where token counts are exact, /v1/tokenize counts a prompt as usage does."""
    if at(page.json, "models", 0, "token_counts", "exact") is not True:
        raise Refused("the contract page does not call token counts exact")
    counted, billed = at(tokens.json, "count"), at(read_answer(answer).usage, "prompt_tokens")
    if not isinstance(counted, int) or not isinstance(billed, int):
        raise CannotTell(f"no counts: {counted!r} and {billed!r}")
    if counted != billed:
        yield Fault(f"{counted} tokens by /v1/tokenize, {billed} by usage", ask=answer.ask)
