"""`tidegate openapi`: the documents about this server's surface, made from its types."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tidegate.contract.json_schema import answer_schema
from tidegate.contract.openapi import openapi_document
from tidegate.contract.self_description import SCHEMA_ID, SelfDescription

DOCUMENTS = ("public", "contract")


def render_document(kind: str) -> str:
    """Returns `public`, the OpenAPI document of the public listener, or `contract`, the schema of `/v1/contract`."""
    document: dict[str, Any]
    document = openapi_document() if kind == "public" else answer_schema(SelfDescription, SCHEMA_ID)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write_document(kind: str, output: Path | None) -> None:
    """Writes a document to a file, whole or not at all, or to standard output. Raises OSError."""
    text = render_document(kind)
    if output is None:
        sys.stdout.write(text)
        return
    unfinished = output.with_name(f"{output.name}.new")
    unfinished.write_text(text, "utf-8")
    os.replace(unfinished, output)
