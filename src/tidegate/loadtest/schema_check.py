"""Whether an answer keeps its JSON Schema. Pure."""

import json
from functools import cache
from typing import Any

import jsonschema_rs

from tidegate.loadtest.session import Json

MAX_SAYS_CHARS = 300


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema))


def check_schema(schema: Json, answer: str) -> str | None:
    """Returns what is wrong with the answer; None where nothing is."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError) as error:
        return f"the answer is not JSON: {error}"[:MAX_SAYS_CHARS]
    try:
        fault = next(iter(_validator(json.dumps(schema)).iter_errors(value)), None)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None  # a schema that cannot be read judges nothing
    return None if fault is None else str(fault.message)[:MAX_SAYS_CHARS]
