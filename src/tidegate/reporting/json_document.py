"""A document of ours as JSON, and the JSON Schema that is published for it, made from its types. Pure."""

import json
from typing import Any

import msgspec


def render_json(document: object) -> str:
    """Returns the whole document, one member a line."""
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, indent=1) + "\n"


def render_schema(kind: type, title: str) -> str:
    """Returns the JSON Schema (2020-12) of a type's documents."""
    (reference,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **reference,
        "$defs": parts,
    }
    return json.dumps(schema, indent=2) + "\n"
