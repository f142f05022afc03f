"""Whether an answer says, in a form that a client understands, that the server does not serve what was asked."""

from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

HONEST_STATUSES = (400, 404, 405, 422, 501)


def describe_refusal(exchange: Exchange) -> str | None:
    """Returns the refusal in words; None where the answer is no refusal, or one that tells a client nothing."""
    if exchange.status not in HONEST_STATUSES:
        return None
    body = exchange.json
    text = at(body, "error")  # some say it in a bare string
    said = at(body, "error", "message") or at(body, "message") or at(body, "detail") or (isinstance(text, str) and text)
    if not said and exchange.status not in (404, 405, 501):
        return None
    return f"the server answers {exchange.status}: {str(said or exchange.response.reason)[:200]}"
