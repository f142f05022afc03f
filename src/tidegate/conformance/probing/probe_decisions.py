"""From the answers to a probe to whether the server can do it. Each decision returns None, or why it cannot.

One rule for all: who accepts a request and does not honour it is held to it. Only an honest refusal, or a route that is
not there, makes a capability absent. Extensions that a server may ignore count as served where it says that it keeps
our contract, or where the answer shows them at work. Pure.
"""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.tokenizer_dialects import text_of
from tidegate.conformance.honest_refusal import describe_refusal
from tidegate.conformance.probing.site import Site
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at
from tidegate.conformance.wire.metric_formats import read_load

Decision = Callable[[Site, tuple[Exchange, ...]], str | None]
"""Exchanges in the order of the probe's asks."""

COULD_NOT_TELL = "could not tell"


def describe_absence(exchange: Exchange) -> str | None:
    """Returns why the exchange shows no such capability; None where the server took the request, or refused it in a
    way that tells a client nothing.
    """
    route = f"{exchange.method} {exchange.url}"
    if exchange.status is None:
        return f"{COULD_NOT_TELL}: {route}: {exchange.ending.value} {exchange.detail}".rstrip()
    if exchange.status in (401, 403, 407, 429) or (exchange.status >= 500 and exchange.status != 501):
        said = at(exchange.json, "error", "message")
        return f"{COULD_NOT_TELL}: {route} answers {exchange.status}" + (f": {said[:200]}" if _is_text(said) else "")
    if (refusal := describe_refusal(exchange)) is not None:
        return refusal
    if exchange.status == 200 and exchange.is_stream and (error := read_answer(exchange).error) is not None:
        return f"{COULD_NOT_TELL}: the stream brings the error {str(at(error, 'message') or error)[:200]}"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_served(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """All asks are taken."""
    del site
    return next((reason for exchange in exchanges if (reason := describe_absence(exchange)) is not None), None)


def returns_token_ids(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Text becomes a list `tokens`, and the way back is taken."""
    if (reason := is_served(site, exchanges)) is not None:
        return reason
    if not site.has_contract and not isinstance(at(exchanges[0].json, "tokens"), list):
        return f"POST {exchanges[0].url} answers in a form that we do not know"
    return None


def has_a_tokenizer(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Some place turns a text into token ids, and its neighbour turns ids into a text; with our contract it is a
    promise. The exchanges: one for each place there, then one for each place back, in the same order.
    """
    if site.has_contract:
        return None
    half = len(exchanges) // 2
    for there, back in zip(exchanges[:half], exchanges[half:], strict=True):
        if there.status == 200 and isinstance(at(there.json, "tokens"), list) and text_of(back) is not None:
            return None
    seen = ", ".join(
        f"POST {one.url}: {one.status if one.status is not None else one.ending.value}" for one in exchanges[:half]
    )
    return f"no tokenize route with a way back in a known form ({seen})"


def writes_reasoning(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The answer, whole, has reasoning apart from its content."""
    if (reason := is_served(site, exchanges)) is not None:
        return reason
    return None if read_answer(exchanges[0]).choice().reasoning else "the answer to a riddle holds no reasoning"


def obeys_choice(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The text is one of two words that no model would say by itself; with our contract, taking it is enough."""
    if (reason := is_served(site, exchanges)) is not None:
        return reason
    if site.has_contract or read_answer(exchanges[0]).text.strip() in ("quokka-17", "quokka-71"):
        return None
    return "structured_outputs has no effect: an unknown field that is ignored, as the OpenAI contract allows"


def ignores_ends(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Pairs of a question without and with `ignore_eos` and `min_tokens`: an answer that ends by itself goes on to its
    limit with them; with our contract, taking them is enough.
    """
    asked = exchanges[1::2]
    if (reason := is_served(site, asked)) is not None or site.has_contract:
        return reason
    ends = [read_answer(exchange).choice().finish_reason for exchange in exchanges]
    pairs = list(zip(ends[::2], ends[1::2], strict=True))
    if ("stop", "length") in pairs:
        return None
    if ("stop", "stop") in pairs:
        return (
            "ignore_eos and min_tokens have no effect: unknown fields that are ignored, as the OpenAI contract allows"
        )
    return f"{COULD_NOT_TELL}: no answer ended by itself before its token limit"


def keeps_a_token_limit(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """No more tokens are told than were allowed. That a limit is accepted and ignored is for the cases of `max_tokens`
    to tell, not for all that need one; with our contract it is a promise.
    """
    if (reason := is_served(site, exchanges)) is not None or site.has_contract:
        return reason
    count = at(read_answer(exchanges[0]).usage, "completion_tokens")
    limit = at(exchanges[0].request_json, "max_tokens")
    if isinstance(count, int) and isinstance(limit, int) and count > limit:
        return f"max_tokens is accepted and not kept: {count} tokens, {limit} were allowed (see chat.max_tokens)"
    return None


def replays(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The second request under one key is answered with the recorded answer; with our contract, taking it is enough."""
    if site.has_contract:
        return is_served(site, exchanges[:1])
    if exchanges[-1].headers.get("idempotent-replayed", "").strip().lower() == "true":
        return None
    return "Idempotency-Key has no effect, as with most servers"


def refuses_a_malformed_deadline(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """A deadline that is no number is refused; with our contract it is theirs to serve."""
    if site.has_contract or exchanges[0].status == 400:
        return None
    return "X-Deadline-Ms has no effect, as with most servers"


def is_a_route(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The first ask is not answered as the second is, whose path no server has; with our contract it is a promise.

    A route that is there may say 404 too, of what it does not find: then it says so in other words than of any path.
    """
    asked, unknown = exchanges
    if site.has_contract:
        return None
    if (reason := describe_absence(asked)) is None or asked.status not in (404, 405, 501):
        return reason if reason is not None and reason.startswith(COULD_NOT_TELL) else None
    if asked.status == unknown.status and _without_path(asked) == _without_path(unknown):
        return f"there is no such route: {asked.method} {asked.url} is answered as any unknown path, {asked.status}"
    return None


def _without_path(exchange: Exchange) -> bytes:
    """Returns the body, without the path where it quotes that."""
    path = urlsplit(exchange.url).path
    body = exchange.body
    for spelling in (path, unquote(path)):
        body = body.replace(spelling.encode(), b"")
    return body


def gives_two_choices(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Two choices were asked for and came. That one comes is for the cases of choices to tell, not for all that need
    several; with our contract it is a promise.
    """
    if (reason := is_served(site, exchanges)) is not None or site.has_contract:
        return reason
    if exchanges[0].status == 200 and len(read_answer(exchanges[0]).choices) == 2:
        return None
    return f"two choices were asked for; status {exchanges[0].status}, {len(read_answer(exchanges[0]).choices)} came"


def brings_the_prompt_back(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The text begins with the prompt. That `echo` is accepted and ignored is for one case to tell, not for all that
    need the prompt back; with our contract it is a promise.
    """
    if (reason := is_served(site, exchanges)) is not None or site.has_contract:
        return reason
    prompt = at(exchanges[0].request_json, "prompt")
    if isinstance(prompt, str) and read_answer(exchanges[0]).text.startswith(prompt):
        return None
    return "echo is accepted, and the prompt does not come back (see completions.echo)"


def asks_for_a_key(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Without a key: 401 or 403; with the caller's: not so."""
    del site
    without, with_key = exchanges
    if without.status is None:
        return f"{COULD_NOT_TELL}: {without.ending.value} {without.detail}".rstrip()
    if without.status not in (401, 403):
        return f"the server answers {without.status} without a key"
    if with_key.status in (401, 403):
        return f"the server answers {with_key.status} also with the key that was given"
    return None


def refuses_unknown_models(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """A name that no model has is not answered as if it had one; with our contract it is a promise."""
    if site.has_contract or exchanges[0].status in (400, 403, 404, 422):
        return None
    if exchanges[0].status == 200:
        return "any name of a model is answered"
    return describe_absence(exchanges[0]) or f"{COULD_NOT_TELL}: an unknown model is answered {exchanges[0].status}"


def describes_itself(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """It says that it keeps our contract; what its description holds is for the cases to say."""
    if site.has_contract:
        return None
    return describe_absence(exchanges[0]) or "GET /contract does not answer with a contract"


def tells_its_load(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Metrics of one of the places are in a known format."""
    del site
    if any(read_load(exchange.body.decode("utf-8", "replace")) for exchange in exchanges if exchange.status == 200):
        return None
    seen = ", ".join(
        f"GET {one.url}: {one.status if one.status is not None else one.ending.value}" for one in exchanges
    )
    return f"no metrics in a known format ({seen})"


def lets_us_in(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The admin listener answers with the token that was given, if any."""
    del site
    status = exchanges[0].status
    if status in (401, 403):
        return f"the admin listener answers {status}: give --admin-token-file"
    return describe_absence(exchanges[0]) or (None if status == 200 else f"the admin listener answers {status}")


def may_be_drained(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """The caller allows it, and the admin listener lets us in."""
    if not site.may_drain:
        return "a drain ends the server: allow it with --drain"
    return lets_us_in(site, exchanges)


def plays_scripts(site: Site, exchanges: tuple[Exchange, ...]) -> str | None:
    """Its contract says so."""
    del exchanges
    return None if site.is_scripted else "the engine is not a scripted one"
