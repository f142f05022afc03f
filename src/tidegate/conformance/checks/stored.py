"""Whether a completion that was to be stored is."""

from collections.abc import Iterator

from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at


def path_of_stored(stored: Exchange) -> str:
    """Returns where a stored completion is fetched; the list of them where the request was refused."""
    name = at(stored.json, "id")
    return f"/chat/completions/{name}" if stored.status == 200 and isinstance(name, str) else "/chat/completions"


def is_stored(stored: Exchange, fetched: Exchange) -> Iterator[Fault]:
    """The request was refused, or what it made is found under its id."""
    if stored.status != 200:
        if stored.status is None or stored.status >= 500:
            yield Fault(f"status {stored.status}, expected an answer or a refusal")
        return
    if fetched.status != 200 or at(fetched.json, "id") != at(stored.json, "id"):
        yield Fault(f"`store: true` got 200, and the completion is not there: {fetched.status}", ask=fetched.ask)
