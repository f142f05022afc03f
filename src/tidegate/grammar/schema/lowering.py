"""JSON Schema to the part of it that the backend keeps exactly.

Every keyword of every subschema is taken up by one rule: it is passed on, said in other words (`_Lowering._say`),
dropped because it is a remark, or refused with its path. Nothing is passed on that is not known here, so the result
holds no keyword that a backend could overlook. Other words are unions and intersections: `oneOf` of parts that exclude
each other is `anyOf`; `if` is the union of both its cases; a dependency is the union of its absence and its duty.

References become definitions, one for each place that is referred to, worked off from a list: neither a long chain nor
a circle of references recurses here. Depth is that of the text, which `json_text.py` bounds.
"""

from collections.abc import Callable
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import MAX_SCHEMA_NODES, UNWRITABLE
from tidegate.grammar.patterns.ecma_pattern import translate
from tidegate.grammar.patterns.regex_ebnf import may_be_written
from tidegate.grammar.refusal import invalid, too_complex, unsupported
from tidegate.grammar.schema.counting import (
    contained_items,
    count_properties,
    is_split_count,
    split_count,
    unique_items,
)
from tidegate.grammar.schema.disjoint import DisjointProver
from tidegate.grammar.schema.formats import LENGTHS, LOCAL_PART, OF_BACKEND, PATTERNS, REFUSED_FORMATS
from tidegate.grammar.schema.lowered_bounds import check_bounds
from tidegate.grammar.schema.negation import NATIVE_PATTERN, Negator
from tidegate.grammar.schema.object_rules import everywhere, lower_evaluation, lower_names
from tidegate.grammar.schema.schema_document import SchemaDocument
from tidegate.grammar.schema.schema_support import ENFORCED, REFUSED, check_keywords, escape, is_number, is_schema

MAX_COMBINATIONS = 512
"""Cases of one value, over all unions that hold for it at once: the backend writes out each combination."""

_AS_THEY_ARE = ("type", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "multipleOf")
_COUNTS = frozenset(("minItems", "maxItems", "minLength", "maxLength"))


def lower_schema(schema: Any) -> dict[str, Any]:
    """Returns an equivalent schema in the backend's words. Raises Refused."""
    if not is_schema(schema):
        raise invalid("a schema is an object, true or false", "")
    document = SchemaDocument(schema)
    return lower_part(document, schema, "")


def lower_part(document: SchemaDocument, part: Any, path: str) -> dict[str, Any]:
    """Returns the same for one schema of a document, which stands at `path`. Raises Refused."""
    return _Lowering(document).run(part, path)


class _Lowering:
    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._prover = DisjointProver(document)
        self._negator = Negator(document, self._prover)
        self._num_nodes = 0
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, Any, str]] = []

    def run(self, part: Any, path: str) -> dict[str, Any]:
        root: Any = self._lower(part, path)
        if not isinstance(root, dict):
            raise invalid("no value satisfies this schema", path)
        definitions: dict[str, Any] = {}
        paths: dict[str, str] = {}
        while self._waiting:
            name, target, path = self._waiting.pop()
            paths[name] = path
            definitions[name] = self._lower(target, path)
        _check_circles(definitions, paths)
        lowered = {**root, "$defs": definitions} if definitions else root
        check_bounds(lowered)
        return lowered

    def _lower(self, schema: Any, path: str) -> Any:
        self._num_nodes += 1
        if self._num_nodes > MAX_SCHEMA_NODES:
            limit = LimitFact("schema_nodes", MAX_SCHEMA_NODES, self._num_nodes)
            raise too_complex("the schema has too many parts", limit, path)
        if isinstance(schema, bool):
            return {} if schema else False
        check_keywords(schema, path)
        if "$ref" in schema and self._document.refs_stand_alone:
            return self._reference(schema, path)
        out: dict[str, Any] = {}
        more = self._plain(schema, path, out)
        self._objects(schema, path, out, more)
        self._arrays(schema, path, out, more)
        for keyword, say in self._SAY.items():
            if keyword in schema:
                more += say(self, schema, f"{path}/{keyword}")
        if "$ref" in schema:
            more.append(self._reference(schema, path))
        return _joined(out, more, path)

    def _plain(self, schema: dict[str, Any], path: str, out: dict[str, Any]) -> list[Any]:
        for keyword in REFUSED:
            if keyword in schema:
                raise unsupported(f"{keyword} is not enforced", f"{path}/{keyword}")
        for keyword in _AS_THEY_ARE:
            if keyword in schema:
                out[keyword] = int(schema[keyword]) if keyword in _COUNTS else schema[keyword]
        for keyword in ("const", "enum"):
            if keyword in schema:
                _check_writable(schema[keyword], f"{path}/{keyword}")
                out[keyword] = schema[keyword]
        _lower_bounds(schema, out)
        if "pattern" in schema:
            out["pattern"] = translate(schema["pattern"], f"{path}/pattern")
            if not may_be_written(out["pattern"]):
                raise unsupported("no string that is written here matches the pattern", f"{path}/pattern")
        native = [{"pattern": schema[NATIVE_PATTERN]}] if NATIVE_PATTERN in schema else []
        return native + _format(schema, path, out)

    def _objects(self, schema: dict[str, Any], path: str, out: dict[str, Any], more: list[Any]) -> None:
        for keyword in ("properties", "patternProperties"):
            if keyword in schema:
                where = f"{path}/{keyword}"
                out[keyword] = {
                    name: self._lower(part, f"{where}/{escape(name)}") for name, part in schema[keyword].items()
                }
        if "patternProperties" in out:
            where = f"{path}/patternProperties"
            out["patternProperties"] = {translate(p, where): part for p, part in out["patternProperties"].items()}
        if isinstance(schema.get("required"), list):
            out["required"] = list(dict.fromkeys(schema["required"]))
        if "additionalProperties" in schema:
            out["additionalProperties"] = self._lower(schema["additionalProperties"], f"{path}/additionalProperties")
        self._counts_and_names(schema, path, out, more)
        for keyword in ("unevaluatedProperties", "unevaluatedItems"):
            if keyword in schema:
                case = lower_evaluation(schema, keyword, self._document, path)
                if case is not None:
                    more.append(self._lower(case, f"{path}/{keyword}"))

    def _counts_and_names(self, schema: dict[str, Any], path: str, out: dict[str, Any], more: list[Any]) -> None:
        if is_split_count(schema):
            split_count(out, more, path)
        elif "minProperties" in schema or "maxProperties" in schema:
            kept, cases = count_properties(schema, path)
            out.update(kept)
            more += [self._lower(case, path) for case in cases]
        if "propertyNames" in schema:
            lower_names(self._names_rule(schema["propertyNames"], path), out, path)
        everywhere(out, more)

    def _names_rule(self, names: Any, path: str) -> Any:
        if isinstance(names, dict) and set(names) & ENFORCED == {"$ref"}:
            return self._document.resolve(names, names["$ref"], f"{path}/propertyNames")[0]
        return names

    def _arrays(self, schema: dict[str, Any], path: str, out: dict[str, Any], more: list[Any]) -> None:
        tuple_form = modern_items(schema)
        if "prefixItems" in tuple_form:
            where = f"{path}/{'items' if isinstance(schema.get('items'), list) else 'prefixItems'}"
            out["prefixItems"] = [self._lower(p, f"{where}/{i}") for i, p in enumerate(tuple_form["prefixItems"])]
        if "items" in tuple_form:
            out["items"] = self._lower(tuple_form["items"], f"{path}/items")
        if schema.get("uniqueItems"):
            cases = unique_items({**schema, **tuple_form}, self._prover, f"{path}/uniqueItems")
            more += [self._lower(case, path) for case in cases]
        if "contains" in schema:
            cases = contained_items({**schema, **tuple_form}, f"{path}/contains")
            more += [self._lower(case, f"{path}/contains") for case in cases]

    def _reference(self, schema: dict[str, Any], path: str) -> Any:
        target, where = self._document.resolve(schema, schema["$ref"], path)
        if isinstance(target, bool):
            return self._lower(target, where)
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = f"d{len(self._names)}"
            self._waiting.append((name, target, where))
        return {"$ref": f"#/$defs/{name}"}

    def _all_of(self, schema: dict[str, Any], path: str) -> list[Any]:
        return [self._lower(part, f"{path}/{i}") for i, part in enumerate(schema["allOf"])]

    def _any_of(self, schema: dict[str, Any], path: str) -> list[Any]:
        return [{"anyOf": [self._lower(part, f"{path}/{i}") for i, part in enumerate(schema["anyOf"])]}]

    def _one_of(self, schema: dict[str, Any], path: str) -> list[Any]:
        parts = schema["oneOf"]
        options = []
        for i, part in enumerate(parts):
            rivals = [
                (k, rival) for k, rival in enumerate(parts) if k != i and not self._prover.are_disjoint(part, rival)
            ]
            others = [self._negator.negate_within(rival, part, f"{path}/{k}") for k, rival in rivals]
            options.append(self._lower({"allOf": [part, *others]} if others else part, f"{path}/{i}"))
        return [{"anyOf": options}]

    def _not(self, schema: dict[str, Any], path: str) -> list[Any]:
        return [self._lower(self._negator.negate(schema["not"], path), path)]

    def _if(self, schema: dict[str, Any], path: str) -> list[Any]:
        base = path.removesuffix("/if")
        then, otherwise = schema.get("then", True), schema.get("else", True)
        if then in (True, {}) and otherwise in (True, {}):
            return []
        condition = schema["if"]
        options = [self._lower({"allOf": [condition, then]}, f"{base}/then")]
        complement = self._negator.negate(condition, path)
        options.append(self._lower({"allOf": [complement, otherwise]}, f"{base}/else"))
        return [{"anyOf": options}]

    def _dependencies(self, schema: dict[str, Any], path: str) -> list[Any]:
        keyword = path.rpartition("/")[2]
        found = []
        for name, duty in schema[keyword].items():
            if duty in ([], True, {}):
                continue
            present: dict[str, Any] = {"type": "object", "required": [name]}
            present |= {"required": [name, *duty]} if isinstance(duty, list) else {"allOf": [duty]}
            absent = {"properties": {name: False}}
            found.append(self._lower({"anyOf": [absent, present]}, f"{path}/{escape(name)}"))
        return found

    _SAY: dict[str, Callable[..., list[Any]]] = {  # noqa: RUF012 - a table, never changed
        "allOf": _all_of,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "not": _not,
        "if": _if,
        "dependencies": _dependencies,
        "dependentRequired": _dependencies,
        "dependentSchemas": _dependencies,
    }


def modern_items(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns `prefixItems` and `items` as draft 2020-12 has them, also from a list under `items`."""
    items = schema.get("items")
    if isinstance(items, list):
        return {"prefixItems": items, "items": schema.get("additionalItems", True)} if items else {}
    return {keyword: schema[keyword] for keyword in ("prefixItems", "items") if keyword in schema}


def _lower_bounds(schema: dict[str, Any], out: dict[str, Any]) -> None:
    """Draft 4 says with a truth value whether `minimum` itself is excluded."""
    for keyword, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        value = schema.get(keyword)
        if value is True and plain in out:
            out[keyword] = out.pop(plain)
        elif is_number(value):
            out[keyword] = value


def _format(schema: dict[str, Any], path: str, out: dict[str, Any]) -> list[Any]:
    name = schema.get("format")
    if name == "email":
        out["format"] = name
        return [{"pattern": LOCAL_PART}]
    if name in REFUSED_FORMATS:
        raise unsupported(f"the format {name} is not enforced", f"{path}/format")
    if name in OF_BACKEND:
        out["format"] = name
    if name not in PATTERNS:
        return []
    part: dict[str, Any] = {"pattern": PATTERNS[name]}
    if name in LENGTHS:
        part["maxLength"] = LENGTHS[name]
    if "pattern" in out:
        return [part]
    out["pattern"] = part["pattern"]
    if name in LENGTHS:
        out["maxLength"] = min(out.get("maxLength", LENGTHS[name]), LENGTHS[name])
    return []


def _joined(out: dict[str, Any], more: list[Any], path: str) -> Any:
    more = [part for part in more if part != {}]
    if any(part is False for part in more):
        return False
    cases = 1
    for part in more:
        cases *= max(1, len(part.get("anyOf", ())))
    if cases > MAX_COMBINATIONS:
        limit = LimitFact("schema_combinations", MAX_COMBINATIONS, cases)
        raise too_complex("too many combinations of cases", limit, path)
    if len(more) == 1 and not out:
        return more[0]
    return {**out, "allOf": more} if more else out


def _check_writable(value: Any, path: str) -> None:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str) and UNWRITABLE.search(node):
            raise unsupported("a control character that has no short escape", path)
        if isinstance(node, dict):
            waiting += [*node, *node.values()]
        elif isinstance(node, list):
            waiting += node


def _check_circles(definitions: dict[str, Any], paths: dict[str, str]) -> None:
    """Raises Refused where a definition, without entering a property or an item, is itself again."""
    states: dict[str, int] = {}
    for start in definitions:
        stack = [(start, iter(_same_value_references(definitions[start])))] if start not in states else []
        states.setdefault(start, 1)
        while stack:
            name, following = stack[-1]
            after = next(following, None)
            if after is None:
                states[name] = 2
                stack.pop()
            elif states.get(after) == 1:
                raise invalid("refers to itself without end", paths[after] + "/$ref")
            elif after not in states:
                states[after] = 1
                stack.append((after, iter(_same_value_references(definitions[after]))))


def _same_value_references(schema: Any) -> list[str]:
    found: list[str] = []
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += [*node.get("allOf", ()), *node.get("anyOf", ())]
            if "$ref" in node:
                found.append(node["$ref"].rpartition("/")[2])
    return found
