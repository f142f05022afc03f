"""What the lists of models say."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at

YEAR_3000_S = 32_503_680_000


def is_model_list(exchange: Exchange) -> Iterator[Fault]:
    """An object `list` with at least one model, each of the right shape, no id twice."""
    if at(exchange.json, "object") != "list":
        yield Fault(f"object is {at(exchange.json, 'object')!r}, expected 'list'")
    data = at(exchange.json, "data")
    if not isinstance(data, list) or not data:
        yield Fault(f"data is {data!r}, expected a list of models")
        return
    for position, model in enumerate(data):
        yield from _model_faults(model, f"data[{position}].")
    ids = [str(at(model, "id")) for model in data]
    for twin in sorted({name for name in ids if ids.count(name) > 1}):
        yield Fault(f"{twin!r} stands in the list twice")


def is_model(exchange: Exchange) -> Iterator[Fault]:
    """One model of the right shape."""
    yield from _model_faults(exchange.json, "")


def is_listed_model(listed: Exchange, exchange: Exchange) -> Iterator[Fault]:
    """What the one route says of a model, the list says too."""
    name = at(exchange.json, "id")
    of_list = next((model for model in at(listed.json, "data") or () if at(model, "id") == name), MISSING)
    if of_list is MISSING:
        yield Fault(f"the model says that it is {name!r}, which the list does not hold", ask=exchange.ask)
    for member in ("object", "created", "owned_by"):
        if at(of_list, member) != at(exchange.json, member):
            yield Fault(
                f"{member} is {at(exchange.json, member)!r}, the list says {at(of_list, member)!r}", ask=exchange.ask
            )


def is_found_alike(plain: Exchange, encoded: Exchange) -> Iterator[Fault]:
    """The same model is found under both spellings. Raises CannotTell where models cannot be looked up at all."""
    if plain.status != 200:
        raise CannotTell(f"looking up a model got {plain.status}")
    if encoded.status != 200 or at(encoded.json, "id") != at(plain.json, "id"):
        yield Fault(f"status {encoded.status}, but {plain.status} for the id as it stands", ask=encoded.ask)


def path_of_first(listed: Exchange, *, encodes: str = "") -> str:
    """Returns the path of the first model of the list, percent-encoded as a path segment; all letters of `encodes`
    too. Raises CannotTell where the list names none.
    """
    name = at(listed.json, "data", 0, "id")
    if not isinstance(name, str) or not name:
        raise CannotTell("the list names no model")
    return "/models/" + "".join(
        f"%{ord(letter):02X}" if letter in encodes and letter.isascii() else quote(letter, safe="") for letter in name
    )


def _model_faults(model: Any, where: str) -> Iterator[Fault]:
    for member in ("id", "owned_by"):
        if not isinstance(found := at(model, member), str) or (member == "id" and not found):
            yield Fault(f"{where}{member} is {found!r}, expected a text")
    if (found := at(model, "object")) != "model":
        yield Fault(f"{where}object is {found!r}, expected 'model'")
    created = at(model, "created")
    if type(created) is not int or not 0 <= created < YEAR_3000_S:
        yield Fault(f"{where}created is {created!r}, expected whole seconds since 1970")
