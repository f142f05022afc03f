"""From a spec to a grammar in llguidance's dialect of Lark: the text that it compiles, here or in another engine.

JSON Schema is lowered first (`lowering.py`) to what llguidance keeps exactly; what it says beyond that is refused.
"""

from tidegate.errors import LimitFact
from tidegate.grammar.composite.composite_grammar import composite_grammar
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES, read_schema
from tidegate.grammar.lark.lark_bounds import check_lark
from tidegate.grammar.lark.lark_text import WrittenGrammar, json_rule, literal, regex
from tidegate.grammar.refusal import invalid, too_complex
from tidegate.grammar.schema.counted_lengths import pattern_lengths, require_countable
from tidegate.grammar.schema.lowering import lower_schema
from tidegate.grammar.tag_grammar import tag_grammar
from tidegate.inference.grammar_parts import CompositeSpec
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTagSpec,
)

_HEADER = '%llguidance {"no_forcing": true}\n'
"""Otherwise, where only one text can follow, masks allow one way to cut it, which need not be the model's."""


def with_header(text: str) -> str:
    """Returns the text as it is compiled."""
    return text if "%llguidance" in text else _HEADER + text


def grammar_source(spec: GrammarSpec, control_ids: frozenset[int]) -> WrittenGrammar:
    """Returns the spec as a Lark grammar in llguidance's dialect. Raises Refused."""
    match spec:
        case StructuralTagSpec():
            return composite_grammar(tag_grammar(spec), control_ids)
        case CompositeSpec():
            return composite_grammar(spec, control_ids)
    return WrittenGrammar(_plain_source(spec))


def _plain_source(spec: JsonSchemaSpec | JsonObjectSpec | RegexSpec | ChoiceSpec | LarkSpec) -> str:
    match spec:
        case JsonSchemaSpec(schema):
            return f"start: {json_rule(lower_schema(read_schema(schema)))}"
        case JsonObjectSpec():
            return f"start: {json_rule({'type': 'object'})}"
        case RegexSpec(pattern):
            _check_size(pattern)
            require_countable(pattern_lengths(pattern))
            return f"start: {regex(pattern)}"
        case ChoiceSpec(choices):
            return _choice_rule(choices)
        case LarkSpec(grammar):
            check_lark(grammar)
            return grammar


def _choice_rule(choices: tuple[str, ...]) -> str:
    if not choices:
        raise invalid("a choice needs at least one text")
    _check_size("".join(choices))
    return "start: CHOICE\nCHOICE: " + " | ".join(map(literal, choices))


def _check_size(text: str) -> None:
    if len(text) > MAX_SCHEMA_BYTES:
        raise too_complex("the grammar is too large", LimitFact("schema_bytes", MAX_SCHEMA_BYTES, len(text)))
