"""What `response_format` and `structured_outputs` ask for: one constraint, or none (CONTRACT.md section 9).

Decides what these two fields mean, alone, together and beside tools, and their sizes. Whether a schema can be enforced
is the grammar's affair, which is asked later.
"""

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import encode_json
from tidegate.contract.generation import GenerationRequest
from tidegate.contract.json_depth import json_depth
from tidegate.contract.response_format import JsonObjectFormat, JsonSchemaFormat, StructuredOutputs, TextFormat
from tidegate.errors import GrammarTooComplex, InvalidValue, LimitFact
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTagSpec,
)
from tidegate.serving.constraint import Constraint, at, in_schema
from tidegate.serving.structural_tags import structural_constraint

KINDS = ("json_schema", "json_object", "regex", "choice", "grammar", "structural_tag")
"""What output can be held to, in the words of `/v1/contract`."""

DROPPED_CONDITIONS: dict[str, str] = {
    "response_format.schema": "response_format of type json_schema, with json_schema.schema",
    "structured_outputs.json_object": "response_format of type json_object",
    "structured_outputs.whitespace_pattern": "nothing: white space is always bounded",
    "structured_outputs.disable_any_whitespace": "nothing: white space is always bounded",
    "structured_outputs.disable_additional_properties": "additionalProperties in the schema",
}
"""Members that other servers know, by what to use instead. Ignoring one would leave the output freer than was asked."""


def check_structured_outputs(request: GenerationRequest) -> None:
    """Raises InvalidValue where not exactly one kind is named, or `response_format` names another."""
    outputs = request.structured_outputs
    if outputs is None:
        return
    given = [name for name in StructuredOutputs.__struct_fields__ if getattr(outputs, name) is not None]
    if len(given) != 1:
        names = ", ".join(StructuredOutputs.__struct_fields__)
        raise InvalidValue(f"structured_outputs: exactly one of {names} is needed", param="structured_outputs")
    if not isinstance(request.response_format, TextFormat | None):
        message = "structured_outputs: not together with a response_format other than text"
        raise InvalidValue(message, param="structured_outputs")


def check_beside_tools(request: ChatRequest) -> None:
    """Raises InvalidValue for structural tags beside tools that may be called: both say what text may turn into."""
    outputs = request.structured_outputs
    param = "structured_outputs" if outputs is not None and outputs.structural_tag is not None else None
    may_call = bool(request.tools or request.functions) and request.tool_choice != "none"
    if param is not None and may_call and request.function_call != "none":
        message = f"{param}: not together with tools that may be called; leave them out, or set tool_choice to none"
        raise InvalidValue(message, param=param)


def constraint_of(request: GenerationRequest, limits: Limits) -> Constraint | None:
    """Returns what the output shall be held to. Raises InvalidRequest for shapes and sizes."""
    constraint = _constraint(request, limits)
    if constraint is not None:
        _check_size(constraint, limits)
    return constraint


def _constraint(request: GenerationRequest, limits: Limits) -> Constraint | None:
    match request.response_format:
        case JsonObjectFormat():
            return Constraint(JsonObjectSpec(), "response_format", at("response_format"))
        case JsonSchemaFormat(json_schema=named):
            return _of_schema(encode_json(named.schema), "response_format.json_schema.schema")
    return None if request.structured_outputs is None else _of_extension(request.structured_outputs, limits)


def _of_extension(outputs: StructuredOutputs, limits: Limits) -> Constraint:
    name = "structured_outputs"
    if outputs.json is not None:
        return _of_schema(_schema_text(outputs.json, f"{name}.json"), f"{name}.json")
    if outputs.regex is not None:
        return Constraint(RegexSpec(outputs.regex), f"{name}.regex", at(f"{name}.regex"))
    if outputs.choice is not None:
        return Constraint(ChoiceSpec(tuple(outputs.choice)), f"{name}.choice", at(f"{name}.choice"))
    if outputs.grammar is not None:
        return Constraint(LarkSpec(outputs.grammar), f"{name}.grammar", at(f"{name}.grammar"))
    if isinstance(outputs.structural_tag, str) and len(outputs.structural_tag) > limits.schema_bytes:
        raise _too_large(f"{name}.structural_tag", "schema_bytes", limits.schema_bytes, len(outputs.structural_tag))
    return structural_constraint(outputs.structural_tag)


def _of_schema(schema: bytes, param: str) -> Constraint:
    return Constraint(JsonSchemaSpec(schema), param, in_schema(param, schema))


def _schema_text(value: object, param: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict):
        raise InvalidValue(f"{param}: must be a schema, as an object or as JSON text", param=param)
    return encode_json(value)


def _check_size(constraint: Constraint, limits: Limits) -> None:
    texts, schemas = _sources(constraint)
    num_bytes = sum(len(text) for text in texts + schemas)
    if num_bytes > limits.schema_bytes:
        raise _too_large(constraint.param, "schema_bytes", limits.schema_bytes, num_bytes)
    depth = max(map(json_depth, schemas), default=0)
    if depth > limits.schema_depth:
        raise _too_large(constraint.param, "schema_depth", limits.schema_depth, depth)


def _too_large(param: str, name: str, value: int, actual: int) -> GrammarTooComplex:
    message = f"{param}: the limit {name} is {value}, and this has {actual}"
    return GrammarTooComplex(message, param=param, limit=LimitFact(name, value, actual))


def _sources(constraint: Constraint) -> tuple[list[bytes], list[bytes]]:
    """Returns the texts of a constraint, and those of its schemas."""
    match constraint.spec:
        case JsonSchemaSpec(schema):
            return [], [schema]
        case StructuralTagSpec(tags, triggers):
            texts = [*triggers, *(text for tag in tags for text in (tag.begin, tag.end))]
            return [text.encode() for text in texts], [tag.schema for tag in tags]
        case RegexSpec(text) | LarkSpec(text):
            return [text.encode()], []
        case ChoiceSpec(choices):
            return [choice.encode() for choice in choices], []
    return [], []
