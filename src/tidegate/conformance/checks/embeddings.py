"""Embeddings: their form, that both encodings say the same, and that each input has its own."""

import base64
import math
import struct
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

_CLOSE = 0.999
"""Least cosine of two embeddings of one text: servers compute in batches, and in half precision."""


_GREATEST = 3.4028235e38
"""Of float32."""


def _rows(exchange: Exchange) -> list[Any]:
    """Returns the rows as they stand. Raises CannotTell where there are none."""
    rows = at(exchange.json, "data")
    if exchange.status != 200 or not isinstance(rows, list) or not rows:
        raise CannotTell(f"no embeddings came (status {exchange.status})")
    return rows


def _vector(row: Any) -> list[float]:
    """Returns the numbers of a row, whichever way it writes them. Raises CannotTell where they cannot be read."""
    value = at(row, "embedding")
    if isinstance(value, str):
        try:
            data = base64.b64decode(value, validate=True)
            return list(struct.unpack(f"<{len(data) // 4}f", data))
        except (ValueError, struct.error):
            raise CannotTell("an embedding is no base64 of float32") from None
    if not isinstance(value, list) or not value or not all(_is_number(part) for part in value):
        raise CannotTell("an embedding is no list of numbers")
    return [float(part) for part in value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cosine(one: list[float], other: list[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    if len(one) != len(other) or not lengths:
        return 0.0
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths


def num_dimensions(exchange: Exchange, *, divisor: int = 1) -> int:
    """Returns how many components the first row has, divided by `divisor`. Raises CannotTell."""
    return max(len(_vector(_rows(exchange)[0])) // divisor, 1)


def has_embeddings_shape(exchange: Exchange) -> Iterator[Fault]:
    """Status 200; object, data, model and usage; each row with object, index and numbers."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200: {exchange.body[:150].decode('utf-8', 'replace')}")
        return
    body = exchange.json
    if at(body, "object") != "list":
        yield Fault(f"object is {at(body, 'object')!r}, expected 'list'")
    if not isinstance(at(body, "model"), str):
        yield Fault(f"model is {at(body, 'model')!r}, expected a string")
    rows = at(body, "data")
    if not isinstance(rows, list) or not rows:
        yield Fault(f"data is {str(rows)[:100]}, expected a list of rows")
        return
    for position, row in enumerate(rows):
        if at(row, "object") != "embedding":
            yield Fault(f"data[{position}].object is {at(row, 'object')!r}, expected 'embedding'")
        if type(at(row, "index")) is not int:
            yield Fault(f"data[{position}].index is {at(row, 'index')!r}, expected an integer")
        value = at(row, "embedding")
        if not isinstance(value, list) or not value or not all(_is_number(part) for part in value):
            yield Fault(f"data[{position}].embedding is {str(value)[:80]}, expected numbers")


def usage_is_told(exchange: Exchange) -> Iterator[Fault]:
    """`usage` has prompt_tokens above 0, and total_tokens, which is the same number."""
    usage = at(exchange.json, "usage")
    counts = [at(usage, name) for name in ("prompt_tokens", "total_tokens")]
    if any(type(count) is not int or count <= 0 for count in counts) or counts[0] != counts[1]:
        yield Fault(f"usage is {str(usage)[:150]}, expected two equal counts above 0")


def usage_adds_up(first: Exchange, second: Exchange, both: Exchange) -> Iterator[Fault]:
    """Two inputs at once cost what they cost alone."""
    told = [at(exchange.json, "usage", "prompt_tokens") for exchange in (first, second, both)]
    if any(type(count) is not int for count in told):
        raise CannotTell("an answer tells no usage")
    if told[0] + told[1] != told[2]:
        yield Fault(f"usage.prompt_tokens are {told[0]} and {told[1]} alone, {told[2]} together")


def is_base64(exchange: Exchange) -> Iterator[Fault]:
    """Every embedding is text: base64 of a whole number of float32, at least one."""
    for position, row in enumerate(_rows(exchange)):
        value = at(row, "embedding")
        try:
            size = len(base64.b64decode(value, validate=True)) if isinstance(value, str) else 0
        except ValueError:
            size = 0
        if not size or size % 4:
            yield Fault(f"data[{position}].embedding is {str(value)[:60]!r}, expected base64 of float32 numbers")


def is_same_embedding(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """The first rows of both answers are one embedding, whichever way they write it."""
    one, other = (_vector(_rows(exchange)[0]) for exchange in (first, second))
    if len(one) != len(other):
        yield Fault(f"{len(one)} components and {len(other)} of the same text")
    elif (cosine := _cosine(one, other)) < _CLOSE:
        yield Fault(f"two embeddings of one text have cosine {cosine:.4f}")


def is_same_to_the_bit(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """The first rows of both answers are the same 32-bit floats."""
    one, other = (_vector(_rows(exchange)[0]) for exchange in (first, second))
    if len(one) != len(other):
        yield Fault(f"{len(one)} components and {len(other)} of the same text")
        return
    try:
        pairs = [struct.pack("<2f", a, b) for a, b in zip(one, other, strict=True)]
    except OverflowError:
        raise CannotTell("a component is no 32-bit float") from None
    for position, pair in enumerate(pairs):
        if pair[:4] != pair[4:]:
            yield Fault(f"component {position} is {one[position]!r} and {other[position]!r}")
            return


def is_unit_length(exchange: Exchange) -> Iterator[Fault]:
    """Every embedding has length 1."""
    for position, row in enumerate(_rows(exchange)):
        length = math.hypot(*_vector(row))
        if not math.isclose(length, 1.0, abs_tol=1e-3):
            yield Fault(f"data[{position}] has length {length:.4f}, expected 1")


def rows_follow_inputs(first: Exchange, second: Exchange, both: Exchange) -> Iterator[Fault]:
    """A list of two inputs has two rows with indices 0 and 1; each is the embedding that its input has alone."""
    rows = _rows(both)
    if [at(row, "index") for row in rows] != [0, 1]:
        yield Fault(f"indices are {[at(row, 'index') for row in rows]}, expected [0, 1]")
        return
    for position, exchange in enumerate((first, second)):
        cosine = _cosine(_vector(_rows(exchange)[0]), _vector(rows[position]))
        if cosine < _CLOSE:
            yield Fault(f"data[{position}] has cosine {cosine:.4f} to the embedding of its input alone")


def inputs_differ(exchange: Exchange) -> Iterator[Fault]:
    """Different texts have different embeddings."""
    vectors = [_vector(row) for row in _rows(exchange)]
    if any(vector == vectors[0] for vector in vectors[1:]):
        yield Fault("different texts have one embedding")


def numbers_are_sound(exchange: Exchange) -> Iterator[Fault]:
    """Every component is a finite float32, and no embedding is all zeros."""
    for position, row in enumerate(_rows(exchange)):
        vector = _vector(row)
        if not all(abs(number) <= _GREATEST for number in vector) or not any(vector):
            yield Fault(f"data[{position}] is {str(vector)[:100]}, expected finite numbers that are not all 0")


def has_rows(exchange: Exchange, *, count: int) -> Iterator[Fault]:
    """There are `count` rows, numbered from 0."""
    indices = [at(row, "index") for row in _rows(exchange)]
    if indices != list(range(count)):
        yield Fault(f"indices are {str(indices)[:100]}, expected 0 to {count - 1}")


def dimensions_are(native: Exchange, exchange: Exchange, *, divisor: int) -> Iterator[Fault]:
    """Each embedding has the components that were asked for: those of `native`, divided by `divisor`."""
    wanted = num_dimensions(native, divisor=divisor)
    for position, row in enumerate(_rows(exchange)):
        if len(_vector(row)) != wanted:
            yield Fault(f"data[{position}] has {len(_vector(row))} components, {wanted} were asked for")


def is_refused_or_ignored(exchange: Exchange) -> Iterator[Fault]:
    """An answer, or an honest refusal; never a failure of the server."""
    if exchange.status not in (200, 400, 422):
        yield Fault(f"status {exchange.status}, expected 200, 400 or 422")
