"""Embeddings as our own contract has them: exact numbers, their length, and faults with their place."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.checks.embeddings import is_same_to_the_bit, is_unit_length
from tidegate.conformance.checks.invalid_value import names_fault
from tidegate.conformance.probing.capability import Capability

_TEXT = "The tide rises, the tide falls."


def _ask(name: str = "it", **fields: Any) -> Ask:
    return Ask(name=name, path="/embeddings", body={"model": "{model}", "input": _TEXT, **fields})


def _case(name: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], *expects: Expect) -> Case:
    return Case(
        id=f"embeddings.{name}",
        title=title,
        why=why,
        clauses=(f"tidegate:reading.{clause}",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(Capability.EMBEDDINGS, Capability.CONTRACT),
        asks=asks,
        expects=expects,
    )


def _faulty(name: str, title: str, param: str, **fields: Any) -> Case:
    return _case(
        f"names_{name}",
        title,
        "One text of a thousand is wrong, and nobody knows which.",
        "faults",
        (_ask(**fields),),
        expect(names_fault, code="invalid_value", param=param),
    )


CASES: tuple[Case, ...] = (
    _case(
        "exact",
        "Both encodings are the same 32-bit floats, bit by bit",
        "Vectors that were stored through two clients differ, and are taken for two.",
        "exact",
        (_ask("float", encoding_format="float"), _ask("base64", encoding_format="base64")),
        expect(is_same_to_the_bit, "float", "base64"),
    ),
    _case(
        "length",
        "Vectors have length 1",
        "Indexes that take the inner product for the cosine sort by length.",
        "length",
        (_ask(),),
        expect(is_unit_length),
    ),
    _faulty("empty_text", "An empty text is refused by its place", "input[1]", input=["a", ""]),
    _faulty("empty_ids", "An empty list of ids is refused by its place", "input[1]", input=["a", []]),
    _faulty("wrong_id", "An id outside the vocabulary is refused by its place", "input[1]", input=[[1], [2**40]]),
    _faulty("dimensions", "More dimensions than the model has are refused", "dimensions", dimensions=1_000_000),
)
