"""Which regular expression of a schema is at fault, when the backend only says that one is."""

import json
from typing import Any

import llguidance

from tidegate.grammar.schema.schema_support import escape


def pattern_path(schema: Any) -> str | None:
    """Returns the path of the first `pattern` or `patternProperties` that does not compile by itself, or None."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, list):
            waiting += [(f"{path}/{i}", item) for i, item in enumerate(node)]
        if not isinstance(node, dict):
            continue
        for keyword, value in node.items():
            where = f"{path}/{escape(keyword)}"
            patterns = [value] if keyword == "pattern" else []
            if keyword == "patternProperties" and isinstance(value, dict):
                patterns = list(value)
            if any(isinstance(pattern, str) and not _compiles(pattern) for pattern in patterns):
                return where
            waiting.append((where, value))
    return None


def _compiles(pattern: str) -> bool:
    source = json.dumps({"type": "string", "pattern": pattern})
    grammar = llguidance.LLMatcher.grammar_from_json_schema(source)
    return not llguidance.LLMatcher.validate_grammar(grammar)
