"""`structured_outputs.structural_tag`, in the two shapes that clients send, as a spec of ours.

The older shape lists `structures` and `triggers`. The newer one has a `format`; those formats are taken that say the
same as a kind of ours, and every other one is refused by its path: nothing is enforced in part.
"""

import json
from typing import Any

import msgspec

from tidegate.contract.codec import encode_json
from tidegate.errors import InvalidSchema, InvalidValue, MissingField, UnsupportedSchema
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    JsonSchemaSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)
from tidegate.serving.constraint import Constraint, at, in_schema, member_path

PARAM = "structured_outputs.structural_tag"
_SERVED_FORMATS = "triggered_tags, json_schema, regex, const_string and or of const_string"


def structural_constraint(value: object) -> Constraint:
    """`value` is an object, or JSON text of one. Raises InvalidRequest with the path of the first fault."""
    tag = _parsed(value)
    if tag.get("type") != "structural_tag":
        raise InvalidValue(f"{PARAM}.type: must be structural_tag", param=f"{PARAM}.type")
    if "format" in tag:
        _check_members(tag, ("type", "format"), PARAM)
        return _of_format(_object(tag["format"], f"{PARAM}.format"), f"{PARAM}.format")
    _check_members(tag, ("type", "structures", "triggers"), PARAM)
    params, tags = [], []
    for n, structure in enumerate(_list(tag, "structures", PARAM)):
        param = f"{PARAM}.structures[{n}]"
        members = _object(structure, param)
        _check_members(members, ("begin", "schema", "end"), param)
        begin, end = _text(members, "begin", param), _text(members, "end", param)
        tags.append(StructuralTag(begin, _schema(members, "schema", param), end))
        params.append((f"{param}.begin", f"{param}.schema"))
    return _triggered(tags, params, _texts(_list(tag, "triggers", PARAM), f"{PARAM}.triggers"))


def _parsed(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            raise InvalidSchema(f"{PARAM}: the text is not JSON", param=PARAM) from None
    return _object(value, PARAM)


def _of_format(form: dict[str, Any], param: str) -> Constraint:
    match form.get("type"):
        case "triggered_tags":
            return _triggered_tags(form, param)
        case "json_schema":
            _check_members(form, ("type", "json_schema", "style"), param)
            _only(form, "style", "json", param)
            schema = _schema(form, "json_schema", param)
            return Constraint(JsonSchemaSpec(schema), param, in_schema(f"{param}.json_schema", schema))
        case "regex":
            _check_members(form, ("type", "pattern"), param)
            return Constraint(RegexSpec(_text(form, "pattern", param)), f"{param}.pattern", at(f"{param}.pattern"))
        case "const_string":
            _check_members(form, ("type", "value"), param)
            return Constraint(ChoiceSpec((_text(form, "value", param),)), f"{param}.value", at(f"{param}.value"))
        case "or":
            _check_members(form, ("type", "elements"), param)
            return _one_of(_list(form, "elements", param), f"{param}.elements")
    raise UnsupportedSchema(f"{param}.type: not enforced; enforced are {_SERVED_FORMATS}", param=f"{param}.type")


def _one_of(elements: list[Any], param: str) -> Constraint:
    texts = []
    for n, element in enumerate(elements):
        members = _object(element, f"{param}[{n}]")
        if members.get("type") != "const_string":
            raise UnsupportedSchema(
                f"{param}[{n}].type: only const_string is enforced here", param=f"{param}[{n}].type"
            )
        texts.append(_text(members, "value", f"{param}[{n}]"))
    return Constraint(ChoiceSpec(tuple(texts)), param, at(param))


def _triggered_tags(form: dict[str, Any], param: str) -> Constraint:
    known = ("type", "triggers", "tags", "at_least_one", "stop_after_first")
    _check_members(form, known, param)
    _only(form, "at_least_one", False, param)
    _only(form, "stop_after_first", False, param)
    params, tags = [], []
    for n, value in enumerate(_list(form, "tags", param)):
        where = f"{param}.tags[{n}]"
        tags.append(_tag(_object(value, where), where))
        params.append((f"{where}.begin", f"{where}.content.json_schema"))
    return _triggered(tags, params, _texts(_list(form, "triggers", param), f"{param}.triggers"))


def _tag(members: dict[str, Any], param: str) -> StructuralTag:
    _check_members(members, ("type", "begin", "content", "end"), param)
    _only(members, "type", "tag", param)
    where = f"{param}.content"
    content = _object(members.get("content"), where)
    if content.get("type") != "json_schema":
        raise UnsupportedSchema(f"{where}.type: only json_schema is enforced here", param=f"{where}.type")
    _check_members(content, ("type", "json_schema", "style"), where)
    _only(content, "style", "json", where)
    begin, end = _text(members, "begin", param), _text(members, "end", param)
    return StructuralTag(begin, _schema(content, "json_schema", where), end)


def _triggered(tags: list[StructuralTag], params: list[tuple[str, str]], triggers: tuple[str, ...]) -> Constraint:
    def locate(pointer: str) -> str:
        parts = pointer.split("/", 4)
        if len(parts) < 4 or parts[1] != "tags":
            return PARAM
        begin, schema = params[int(parts[2])]
        if parts[3] != "schema":
            return begin
        inner = "/" + parts[4] if len(parts) > 4 else ""
        return member_path(schema, inner, json.loads(tags[int(parts[2])].schema))

    return Constraint(StructuralTagSpec(tuple(tags), triggers), PARAM, locate)


def _check_members(value: dict[str, Any], known: tuple[str, ...], param: str) -> None:
    """A member that is not known here could be a condition that would go unheeded."""
    for name in value:
        if name not in known:
            where = member_path(param, "/" + name[:64].replace("~", "~0").replace("/", "~1"), None)
            raise UnsupportedSchema(f"{where}: not enforced", param=where)


def _only(value: dict[str, Any], name: str, wanted: object, param: str) -> None:
    if value.get(name, wanted) != wanted:
        raise UnsupportedSchema(f"{param}.{name}: only {json.dumps(wanted)} is enforced", param=f"{param}.{name}")


def _object(value: object, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(f"{param}: must be an object", param=param)
    return value


def _list(value: dict[str, Any], name: str, param: str) -> list[Any]:
    if name not in value:
        raise MissingField(f"{param}.{name}: this field is required", param=f"{param}.{name}")
    if not isinstance(value[name], list) or not value[name]:
        raise InvalidValue(f"{param}.{name}: must be a list, and not empty", param=f"{param}.{name}")
    return list(value[name])


def _texts(values: list[Any], param: str) -> tuple[str, ...]:
    for n, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidValue(f"{param}[{n}]: must be a string", param=f"{param}[{n}]")
    return tuple(values)


def _text(value: dict[str, Any], name: str, param: str) -> str:
    if name not in value:
        raise MissingField(f"{param}.{name}: this field is required", param=f"{param}.{name}")
    if not isinstance(value[name], str):
        raise InvalidValue(f"{param}.{name}: must be a string", param=f"{param}.{name}")
    return str(value[name])


def _schema(value: dict[str, Any], name: str, param: str) -> bytes:
    if name not in value:
        raise MissingField(f"{param}.{name}: this field is required", param=f"{param}.{name}")
    if not isinstance(value[name], dict | bool):
        raise InvalidValue(f"{param}.{name}: must be a schema", param=f"{param}.{name}")
    return encode_json(value[name])
