"""Where a constraint begins in the output of a model that reasons: behind the reasoning, which itself is free.

Decides by where the prompt stops:

| the prompt stops | closing markers | the constraint |
|---|---|---|
| behind reasoning, or there is none | | holds from the first token |
| inside reasoning | each a token of its own | starts after that token: the engine is told its id |
| inside reasoning | spelled in several tokens | stands in a grammar behind free text up to the marker |
| before: the model may reason | | stands in a grammar that allows both, at once or behind opened reasoning |

An answer that may itself begin with an opening marker is read as reasoning, as without a constraint.

Models that write in channels reason in a channel of their own; the answer is held to its shape in the last one. Never
is output left free that a caller wants constrained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    FreeUntilPart,
    GrammarPart,
    RepeatPart,
    RulePart,
    SeriesPart,
    TextPart,
)
from tidegate.parsers.channel_grammar import answer_in_channel
from tidegate.parsers.marker_tokens import MarkerTokens
from tidegate.parsers.tool_format import ChannelCalls, ReasoningMarkers
from tidegate.serving.answer_part import answer_part
from tidegate.serving.constraint import Constraint
from tidegate.serving.prompt_state import PromptState

_PLACE = "answer"
_RULE = "behind_reasoning"


@dataclass(frozen=True, slots=True)
class PlacedConstraint:
    """`starts_after`: as in `GrammarRule`."""

    constraint: Constraint
    starts_after: tuple[tuple[int, ...], ...] = ()


def place_constraint(
    constraint: Constraint,
    markers: ReasoningMarkers | None,
    state: PromptState,
    *,
    tokens: MarkerTokens,
    single_token: Callable[[str], int | None],
) -> PlacedConstraint:
    """Returns the constraint as it holds for the whole output.

    `single_token`: the id of the one token that a text is, None where it takes several. Raises InvalidRequest.
    """
    if markers is None or state is PromptState.BEHIND:
        return PlacedConstraint(constraint)
    if state is PromptState.INSIDE:
        ends = [single_token(mark) for mark in markers.closes]
        ids = [one for one in ends if one is not None]
        if len(ids) == len(ends):
            return PlacedConstraint(constraint, tuple((one,) for one in ids))
    spec, locate = _as_rule(constraint)
    reasoned = _until_closed(markers.closes, tokens)
    root: GrammarPart = reasoned
    if state is PromptState.BEFORE:
        opened = [SeriesPart((*tokens.written(mark), reasoned)) for mark in markers.opens]
        root = AlternativesPart((RulePart(_RULE), *opened))
    return PlacedConstraint(replace(constraint, spec=CompositeSpec(root, spec.rules), locate=locate))


def place_answer(answer: Constraint, style: ChannelCalls, tokens: MarkerTokens) -> Constraint:
    """Returns an answer's constraint for a model that writes in channels: its last message is the answer."""
    part = answer_part(answer, _PLACE)
    return replace(answer, spec=CompositeSpec(answer_in_channel(style, tokens, part)), locate=_behind_place(answer))


def _as_rule(constraint: Constraint) -> tuple[CompositeSpec, Callable[[str], str]]:
    """Returns the constraint as the rule `_RULE` of a composite, and what locates its refusals."""
    part = answer_part(constraint, _PLACE)
    if isinstance(constraint.spec, CompositeSpec):
        return CompositeSpec(part, (*constraint.spec.rules, (_RULE, part))), constraint.locate
    return CompositeSpec(part, ((_RULE, part),)), _behind_place(constraint)


def _behind_place(constraint: Constraint) -> Callable[[str], str]:
    return lambda path: constraint.locate(path.removeprefix(_PLACE))


def _until_closed(closes: Sequence[str], tokens: MarkerTokens) -> FreeUntilPart:
    """Returns free text up to a closing marker; the line breaks behind it are nobody's."""
    then = SeriesPart((RepeatPart(TextPart("\n"), most=2), RulePart(_RULE)))
    return FreeUntilPart(tuple(trigger for mark in closes for trigger in tokens.triggers(mark, then)))
