"""Clauses: what was promised, and where it is written. Every case names those that it checks."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.conformance.clauses.answers import OPENAI_ANSWERS, TIDEGATE_ANSWERS
from tidegate.conformance.clauses.openai import OPENAI
from tidegate.conformance.clauses.output import OPENAI_OUTPUT, TIDEGATE_OUTPUT
from tidegate.conformance.clauses.service import OPENAI_SERVICE, TIDEGATE_SERVICE
from tidegate.conformance.clauses.tidegate import TIDEGATE


@dataclass(frozen=True, slots=True)
class Clause:
    """`text`: the rule in our words. `source`: the document and its part."""

    id: str
    text: str
    source: str


def _read(table: Mapping[str, tuple[str, str]], prefix: str) -> dict[str, Clause]:
    return {f"{prefix}:{name}": Clause(f"{prefix}:{name}", text, source) for name, (text, source) in table.items()}


CLAUSES: Mapping[str, Clause] = _read(
    {**OPENAI, **OPENAI_ANSWERS, **OPENAI_OUTPUT, **OPENAI_SERVICE}, "openai"
) | _read({**TIDEGATE, **TIDEGATE_ANSWERS, **TIDEGATE_OUTPUT, **TIDEGATE_SERVICE}, "tidegate")
