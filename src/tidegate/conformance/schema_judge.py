"""Whether a JSON value keeps a JSON Schema. The validator is a library of its own: the judge must not be judged by its
own reading of the standard.
"""

from typing import Any

import jsonschema_rs


def describe_breach(schema: Any, value: Any) -> str | None:
    """Returns what of the value breaks the schema (draft 2020-12, formats asserted); None where nothing does."""
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for error in validator.iter_errors(value):
        where = "/".join(map(str, error.instance_path))
        return f"at /{where}: {error.message[:200]}"
    return None
