"""Embeddings: form, encodings, inputs, usage, and what must be refused."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Expect, Severity, expect
from tidegate.conformance.checks.embeddings import (
    dimensions_are,
    has_embeddings_shape,
    has_rows,
    inputs_differ,
    is_base64,
    is_refused_or_ignored,
    is_same_embedding,
    num_dimensions,
    numbers_are_sound,
    rows_follow_inputs,
    usage_adds_up,
    usage_is_told,
)
from tidegate.conformance.checks.invalid_value import is_refused
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_TEXT = "The tide rises, the tide falls."
_OTHER = "A recipe for bread with rye, salt and water."
_NEEDS = (Capability.EMBEDDINGS,)
_HARD = ("Zürich 東京 \U0001f30a", "שלום עולם", "a\tb\n\nc", "0")
_SOME_IDS = [40, 41, 42, 43]


def _ask(name: str = "it", value: Any = _TEXT, wave: int = 0, *, is_refusable: bool = False, **fields: Any) -> Ask:
    body = {"model": "{model}", "input": value, **fields}
    return Ask(name=name, path="/embeddings", body=body, wave=wave, is_refusable=is_refusable)


def _case(
    name: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], *expects: Expect, severity: Severity
) -> Case:
    return Case(
        id=f"embeddings.{name}",
        title=title,
        why=why,
        clauses=(
            f"openai:embeddings.{clause}",
            *(("openai:errors.blame",) if any(one.check is is_refused for one in expects) else ()),
        ),
        severity=severity,
        needs=_NEEDS,
        asks=asks,
        expects=expects,
    )


def _refused(name: str, what: str, clause: str, **fields: Any) -> Case:
    body = {"model": "{model}", "input": _TEXT, **fields}
    return _case(
        f"refuses_{name}",
        f"{what} is refused",
        "A vector of nothing is stored, and found for every question.",
        clause,
        (Ask(path="/embeddings", body={key: value for key, value in body.items() if value is not ...}),),
        expect(is_refused),
        severity=Severity.WRONG_DATA,
    )


_BREAKS, _DATA, _BILL = Severity.BREAKS_CLIENTS, Severity.WRONG_DATA, Severity.WRONG_BILL
_ALONE = (_ask("first"), _ask("second", _OTHER), _ask("both", [_TEXT, _OTHER]))

CASES: tuple[Case, ...] = (
    _case(
        "object",
        "An answer has object, data, model, and rows with object, index and numbers",
        "Typed clients fail on a missing member.",
        "object",
        (_ask(),),
        expect(has_embeddings_shape),
        severity=_BREAKS,
    ),
    _case(
        "usage",
        "`usage` tells prompt_tokens and total_tokens",
        "Bills are made from it.",
        "usage",
        (_ask(),),
        expect(has_status, allowed=(200,)),
        expect(usage_is_told),
        severity=_BILL,
    ),
    _case(
        "usage_adds_up",
        "Two inputs cost what they cost alone",
        "Clients that send lists pay otherwise.",
        "usage",
        _ALONE,
        expect(usage_adds_up, "first", "second", "both"),
        severity=_BILL,
    ),
    _case(
        "base64",
        "`base64` gives text that holds float32 numbers",
        "The official client asks for it where its caller says nothing, and fails on its first call.",
        "encoding",
        (_ask(encoding_format="base64"),),
        expect(has_status, allowed=(200,)),
        expect(is_base64),
        severity=_BREAKS,
    ),
    _case(
        "encodings_agree",
        "`base64` and `float` are the same numbers",
        "Vectors that were stored through two clients do not match.",
        "encoding",
        (_ask("float", encoding_format="float"), _ask("base64", encoding_format="base64")),
        expect(is_same_embedding, "float", "base64"),
        severity=_DATA,
    ),
    _case(
        "float_is_default",
        "Without an encoding the embedding is a list of numbers",
        "Clients without the official library read numbers.",
        "encoding",
        (_ask(),),
        expect(has_embeddings_shape),
        severity=_BREAKS,
    ),
    _case(
        "list_in_order",
        "Each of several inputs has its row, in its place",
        "Vectors are stored under the wrong document.",
        "input",
        _ALONE,
        expect(rows_follow_inputs, "first", "second", "both"),
        severity=_DATA,
    ),
    _case(
        "list_of_one",
        "A list of one input has one row",
        "Batches of one are the last of every job.",
        "input",
        (_ask(value=[_TEXT]),),
        expect(has_rows, count=1),
        severity=_BREAKS,
    ),
    _case(
        "many",
        "Thirty-two inputs have thirty-two rows, numbered",
        "Batches lose their end.",
        "input",
        (_ask(value=[f"Line {n}" for n in range(32)]),),
        expect(has_status, allowed=(200,)),
        expect(has_rows, count=32),
        severity=_DATA,
    ),
    _case(
        "scripts",
        "Texts of any script have embeddings",
        "A batch fails for one text in it.",
        "input",
        (_ask(value=list(_HARD)),),
        expect(has_embeddings_shape),
        expect(has_rows, count=len(_HARD)),
        severity=_BREAKS,
    ),
    _case(
        "inputs_differ",
        "Different texts have different embeddings",
        "Every search finds everything.",
        "input",
        (_ask(value=[_TEXT, _OTHER, *_HARD]),),
        expect(inputs_differ),
        severity=_DATA,
    ),
    _case(
        "numbers_are_sound",
        "Components are finite, and not all zero",
        "One NaN spoils an index.",
        "object",
        (_ask(value=[_TEXT, *_HARD]),),
        expect(has_embeddings_shape),
        expect(numbers_are_sound),
        severity=_DATA,
    ),
    _case(
        "repeats",
        "One text has one embedding, asked twice",
        "Stored vectors stop to match new ones.",
        "object",
        (_ask("first"), _ask("second", wave=1)),
        expect(is_same_embedding, "first", "second"),
        severity=_DATA,
    ),
    _case(
        "token_ids",
        "Token ids are an input, or refused",
        "Clients that cut texts by token send ids.",
        "input",
        (_ask(value=_SOME_IDS, is_refusable=True),),
        expect(has_embeddings_shape),
        expect(has_rows, count=1),
        severity=_BREAKS,
    ),
    _case(
        "token_lists",
        "Lists of token ids are inputs, or refused",
        "Clients that cut texts by token send ids.",
        "input",
        (_ask(value=[_SOME_IDS, _SOME_IDS[:2]], is_refusable=True),),
        expect(has_embeddings_shape),
        expect(has_rows, count=2),
        severity=_BREAKS,
    ),
    _case(
        "dimensions",
        "`dimensions` are honoured or refused",
        "Vectors do not fit the column that they are stored in.",
        "dimensions",
        (
            _ask("native"),
            _ask(dimensions=Derived(num_dimensions, ("native",), {"divisor": 2}), wave=1, is_refusable=True),
        ),
        expect(dimensions_are, "native", "it", divisor=2),
        severity=_DATA,
    ),
    _case(
        "unknown_member",
        "An unknown member is refused or ignored, never a failure",
        "The schema is closed; clients of other servers send more.",
        "closed",
        (_ask(truncate_prompt_tokens=None, colour="red"),),
        expect(is_refused_or_ignored),
        severity=Severity.NUISANCE,
    ),
    _refused("empty_text", "An empty text", "input", input=""),
    _refused("empty_list", "An empty list", "input", input=[]),
    _refused("no_input", "A request without input", "input", input=...),
    _refused("number", "A number as input", "input", input=5),
    _refused("object", "An object as input", "input", input={"text": _TEXT}),
    _refused("mixture", "A list of texts and objects", "input", input=[_TEXT, {"text": _OTHER}]),
    _refused("encoding", "An unknown encoding", "encoding", encoding_format="float8"),
    _refused("no_dimensions", "A number of dimensions below 1", "dimensions", dimensions=0),
)
