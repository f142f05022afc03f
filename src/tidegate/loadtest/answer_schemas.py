"""The JSON Schemas of the constrained load: small ones of the kinds that callers send. Pure."""

from typing import Any

_TEXT = {"type": "string", "maxLength": 40}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


SCHEMAS: tuple[dict[str, Any], ...] = (
    _object(name=_TEXT, age={"type": "integer"}, is_member={"type": "boolean"}),
    _object(
        title=_TEXT,
        tags={"type": "array", "items": {"enum": ["news", "sport", "music", "art"]}, "minItems": 1, "maxItems": 4},
        score={"type": "number"},
    ),
    _object(
        order=_object(number={"type": "integer"}, status={"enum": ["open", "paid", "sent"]}),
        items={"type": "array", "items": _object(what=_TEXT, count={"type": "integer"}), "minItems": 1, "maxItems": 3},
    ),
    _object(city=_TEXT, weather={"enum": ["sun", "rain", "snow", "wind"]}, degrees={"type": "integer"}),
)
