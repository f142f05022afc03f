"""A constraint on the answer as a part of a larger grammar: one that has calls, channels or reasoning around it."""

from tidegate.grammar.refusal import Refused
from tidegate.grammar.spec_part import spec_part
from tidegate.inference.grammar_parts import GrammarPart
from tidegate.serving.constraint import Constraint


def answer_part(answer: Constraint, place: str) -> GrammarPart:
    """Returns what the answer shall be; see `spec_part`. Raises InvalidRequest for tags that do not fit together."""
    try:
        return spec_part(answer.spec, place)
    except Refused as refused:
        raise answer.error(refused.refusal) from None
