"""A constraint as a part of a larger grammar: one that has calls, channels or reasoning around it."""

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
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTagSpec,
)

_ANY_OBJECT = b'{"type":"object"}'


def spec_part(spec: GrammarSpec, place: str) -> GrammarPart:
    """Returns what `spec` allows; refusals of a schema in it have paths that begin with `place`.

    Raises Refused for structural tags that do not fit together. A composite's own rules are its owner's to keep.
    """
    match spec:
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
            return tag_grammar(spec).root
    raise TypeError(type(spec).__name__)
