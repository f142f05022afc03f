"""What shape the answer shall have: `response_format`, and the extension `structured_outputs`."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from tidegate.contract.bounds import FunctionName


class TextFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    pass


class JsonObjectFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_object"):
    pass


class JsonSchema(Struct, frozen=True, kw_only=True):
    """A named schema. `strict` changes nothing: the schema is always enforced."""

    name: FunctionName
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class JsonSchemaFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    json_schema: JsonSchema


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat


class StructuredOutputs(Struct, frozen=True, kw_only=True):
    """Exactly one member is given; the rules check that. `json` is a schema as an object or as JSON text."""

    json: Any = None
    regex: str | None = None
    choice: Annotated[list[str], Meta(min_length=1)] | None = None
    grammar: str | None = None
    structural_tag: Any = None
