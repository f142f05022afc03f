"""A schema read for a notation other than JSON: references followed, and what of it has no place there refused."""

from dataclasses import dataclass
from typing import Any

from tidegate.grammar.json_text import MAX_SCHEMA_DEPTH, read_schema
from tidegate.grammar.refusal import invalid, too_complex, unsupported
from tidegate.grammar.schema.disjoint import DisjointProver
from tidegate.grammar.schema.schema_document import SchemaDocument
from tidegate.grammar.schema.schema_support import ENFORCED, REFUSED, check_keywords, escape, is_schema

_DEFINITIONS = frozenset(("$defs", "definitions"))
_OBJECT = frozenset(("type", "properties", "required", "additionalProperties", "minProperties", "maxProperties"))


@dataclass(frozen=True, slots=True)
class Member:
    """A property of an object."""

    name: str
    schema: Any
    path: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class ObjectRules:
    """The members of an object in their order. `further`: the schema of others, where there are no listed ones."""

    members: tuple[Member, ...]
    further: Any
    further_path: str


class NotationSchema:
    """One schema document. Raises Refused for text that is not a schema."""

    def __init__(self, text: bytes) -> None:
        root = read_schema(text)
        if not is_schema(root):
            raise invalid("a schema is an object, true or false", "")
        self.root = root
        self.document = SchemaDocument(root)
        self.prover = DisjointProver(self.document)

    def followed(self, node: Any, path: str) -> tuple[Any, str]:
        """Returns what a schema that is only a reference leads to. Raises Refused."""
        for _ in range(MAX_SCHEMA_DEPTH):
            if not isinstance(node, dict) or "$ref" not in node:
                return node, path
            check_keywords(node, path)
            beside = keywords_of(node) - {"$ref"}
            if beside and not self.document.refs_stand_alone:
                return node, path
            node, path = self.document.resolve(node, node["$ref"], path)
        raise invalid("refers to itself without end", f"{path}/$ref")

    def object_rules(self, node: Any, path: str) -> ObjectRules:
        """Returns the members of an object that a schema allows. Raises Refused for what is no list of members."""
        node, path = self.followed(node, path)
        if node is False:
            raise invalid("no value satisfies this schema", path)
        schema: dict[str, Any] = {} if node is True else node
        check_keywords(schema, path)
        self.only(schema, _OBJECT, path)
        if "object" not in types_of(schema):
            raise invalid("arguments are an object", f"{path}/type")
        members, further = self._members(schema, path)
        _check_counts(schema, members, further, path)
        return ObjectRules(members, further, f"{path}/additionalProperties")

    def only(self, schema: dict[str, Any], keywords: frozenset[str], path: str) -> None:
        """Raises Refused for the first enforced keyword that is not one of these."""
        for keyword in schema:
            if keyword in keywords_of(schema) and keyword not in keywords:
                raise unsupported(f"{keyword} is not enforced in this format", f"{path}/{keyword}")

    def check_exclusive(self, parts: list[Any], path: str) -> None:
        """Raises Refused where two parts of a `oneOf` may have a value in common."""
        for i, part in enumerate(parts):
            if any(not self.prover.are_disjoint(part, other) for other in parts[:i]):
                raise unsupported("parts that may hold at once", f"{path}/{i}")

    def _members(self, schema: dict[str, Any], path: str) -> tuple[tuple[Member, ...], Any]:
        properties: dict[str, Any] = schema.get("properties", {})
        listed = schema.get("required")
        required: list[str] = list(dict.fromkeys(listed)) if isinstance(listed, list) else []
        further = schema.get("additionalProperties", True)
        members = [
            Member(name, part, f"{path}/properties/{escape(name)}", name in required)
            for name, part in properties.items()
            if part is not False or name in required
        ]
        members += [
            Member(name, further, f"{path}/additionalProperties", True) for name in required if name not in properties
        ]
        if any(member.schema is False for member in members):
            raise invalid("no value satisfies this schema", f"{path}/required")
        return tuple(members), False if members else further


def keywords_of(schema: dict[str, Any]) -> set[str]:
    """Returns the keywords of a schema that say something about a value."""
    return {word for word in schema if word in ENFORCED or word in REFUSED} - _DEFINITIONS


def types_of(schema: dict[str, Any]) -> frozenset[str]:
    """Returns the types that a schema's own `type` allows; `number` holds integers too."""
    names = schema.get("type", ["null", "boolean", "object", "array", "string", "number"])
    return frozenset([names] if isinstance(names, str) else names)


def is_free(node: Any) -> bool:
    """Whether a schema allows every value."""
    return node is True or (isinstance(node, dict) and not keywords_of(node))


def check_depth(depth: int, path: str) -> None:
    """Raises Refused below `MAX_SCHEMA_DEPTH` parts inside each other."""
    if depth > MAX_SCHEMA_DEPTH:
        raise too_complex("the schema is nested too deeply", None, path)


def _check_counts(schema: dict[str, Any], members: tuple[Member, ...], further: Any, path: str) -> None:
    num_required = sum(member.is_required for member in members)
    if schema.get("minProperties", 0) > num_required:
        raise unsupported("a count of properties in this format", f"{path}/minProperties")
    most = schema.get("maxProperties")
    if most is not None and (further is not False or most < len(members)):
        raise unsupported("a count of properties in this format", f"{path}/maxProperties")
