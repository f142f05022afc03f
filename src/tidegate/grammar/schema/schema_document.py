"""References of one schema document: `$ref` by pointer, anchor or id, within the document itself.

Other documents are never fetched. The index is built once, without recursion.
"""

from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from tidegate.grammar.refusal import invalid, unsupported
from tidegate.grammar.schema.schema_support import subschemas

_OLD_DRAFTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


class SchemaDocument:
    """Raises Refused for a dialect that is not JSON Schema's own."""

    def __init__(self, root: Any) -> None:
        self.root = root
        dialect = root.get("$schema") if isinstance(root, dict) else None
        if dialect is not None and (not isinstance(dialect, str) or "json-schema.org/" not in dialect):
            raise unsupported("a dialect of its own", "/$schema")
        self.refs_stand_alone = isinstance(dialect, str) and any(draft in dialect for draft in _OLD_DRAFTS)
        """In drafts up to 7, keywords beside `$ref` say nothing."""
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._paths: dict[int, str] = {}
        self._index(root, "", "")

    @property
    def is_one_resource(self) -> bool:
        """Whether equal references mean the same wherever they stand: no part but the whole has an id."""
        return all(resource is self.root for resource in self._resources.values())

    def resolve(self, node: dict[str, Any], reference: str, path: str) -> tuple[Any, str]:
        """Returns what a reference written in `node` leads to, and its path. Raises Refused when nothing is there."""
        if id(node) not in self._bases and not self.is_one_resource:
            raise unsupported("a part of several resources that was said in other words", f"{path}/$ref")
        base = self._bases.get(id(node), "")
        try:
            target, fragment = urldefrag(urljoin(base, reference) if reference[:1] != "#" else base + reference)
        except ValueError as error:
            raise invalid("not a reference", f"{path}/$ref") from error
        if target not in self._resources:
            raise unsupported(f"leads out of this schema: {reference[:64]}", f"{path}/$ref")
        found = self._within(target, unquote(fragment))
        if not isinstance(found, dict | bool):
            raise invalid(f"leads nowhere: {reference[:64]}", f"{path}/$ref")
        if isinstance(found, bool):
            return found, path
        if id(found) not in self._paths:  # a place where no keyword puts a schema
            self._index(found, target, unquote(fragment))
        return found, self._paths[id(found)]

    def _within(self, resource: str, fragment: str) -> Any:
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((resource, fragment))
        found = self._resources[resource]
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found

    def _index(self, node: Any, base: str, path: str) -> None:
        waiting: list[tuple[Any, str, str]] = [(node, base, path)]
        while waiting:
            node, base, path = waiting.pop()
            if not isinstance(node, dict) or id(node) in self._paths:
                continue
            base = self._enter(node, base)
            self._bases[id(node)] = base
            self._paths[id(node)] = path
            waiting += [(part, base, path + below) for below, part in subschemas(node)]

    def _enter(self, node: dict[str, Any], base: str) -> str:
        name = node.get("$id", node.get("id") if self.refs_stand_alone else None)
        if isinstance(name, str) and not (self.refs_stand_alone and "$ref" in node):
            try:
                uri, fragment = urldefrag(urljoin(base, name))
            except ValueError as error:
                raise invalid("not an id", "/$id") from error
            if fragment:
                self._anchors[(uri, fragment)] = node
            else:
                base = uri
                self._resources.setdefault(uri, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault((base, anchor), node)
        return base
