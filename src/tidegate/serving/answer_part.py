"""A constraint on the answer as a part of a larger grammar: one that has calls, channels or reasoning around it."""

from tidegate.grammar.refusal import Refused
from tidegate.grammar.tag_grammar import tag_grammar
from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    GrammarPart,
    JsonPart,
    LarkPart,
    PatternPart,
    TextPart,
)
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTagSpec,
)
from tidegate.serving.constraint import Constraint

_ANY_OBJECT = b'{"type":"object"}'


def answer_part(answer: Constraint, place: str) -> GrammarPart:
    """Returns what the answer shall be; refusals of a schema in it have paths that begin with `place`.

    Raises InvalidRequest for structural tags that do not fit together. A composite's own rules are its owner's to keep.
    """
    match answer.spec:
        case JsonSchemaSpec(schema):
            return JsonPart(schema, place)
        case JsonObjectSpec():
            return JsonPart(_ANY_OBJECT, place)
        case RegexSpec(pattern):
            return PatternPart(pattern, place)
        case ChoiceSpec(choices):
            return AlternativesPart(tuple(TextPart(text) for text in choices))
        case LarkSpec(grammar):
            return LarkPart(grammar, place)
        case CompositeSpec(root):
            return root
        case StructuralTagSpec():
            try:
                return tag_grammar(answer.spec).root
            except Refused as refused:
                raise answer.error(refused.refusal) from None
    raise TypeError(type(answer.spec).__name__)
