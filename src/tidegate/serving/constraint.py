"""What a request holds its output to, and where in the body it stands: so that a refusal can name the field."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.errors import GrammarTooComplex, InvalidRequest, InvalidSchema, UnsupportedSchema
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import GrammarSpec

_ERRORS: dict[RefusalKind, type[InvalidRequest]] = {
    RefusalKind.INVALID_SCHEMA: InvalidSchema,
    RefusalKind.UNSUPPORTED_SCHEMA: UnsupportedSchema,
    RefusalKind.GRAMMAR_TOO_COMPLEX: GrammarTooComplex,
}
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


@dataclass(frozen=True, slots=True)
class Constraint:
    """`param` is the field that asks for it. `locate` turns a refusal's path into the path of the place in the body."""

    spec: GrammarSpec
    param: str
    locate: Callable[[str], str]

    def error(self, refusal: GrammarRefusal) -> InvalidRequest:
        """Returns what the caller is told about a refusal of this constraint."""
        param = self.param if refusal.path is None else self.locate(refusal.path)
        return _ERRORS[refusal.kind](f"{param}: {refusal.message}", param=param, limit=refusal.limit)


def member_path(param: str, pointer: str, value: object) -> str:
    """Returns `param`, extended by a JSON pointer into the value that stands there: `s.properties.a.items[1]`."""
    path = param
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, dict) and name.isascii() and name.isdigit():
            path += f"[{name}]"
            value = value[int(name)] if isinstance(value, list) and int(name) < len(value) else None
            continue
        path += f".{name}" if _PLAIN_NAME.match(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
        value = value.get(name) if isinstance(value, dict) else None
    return path


def in_schema(param: str, schema: bytes) -> Callable[[str], str]:
    """Returns the `locate` of a schema, as JSON text, that stands at `param`."""

    def locate(pointer: str) -> str:
        try:
            return member_path(param, pointer, json.loads(schema))
        except (ValueError, RecursionError):
            return param

    return locate


def at(param: str) -> Callable[[str], str]:
    """Returns the `locate` of a constraint without parts: every fault is laid to `param`."""
    return lambda _pointer: param
