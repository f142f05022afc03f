"""An ask as it looks before anything was answered: what earlier answers will fill in stands there as a name. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.curl_line import curl_line
from tidegate.conformance.fill import Filling, fill
from tidegate.conformance.target import Target

SKETCHED = Target(base_url="$BASE_URL/v1", api_key="$API_KEY", model="$MODEL", admin_url="$ADMIN_URL")
"""Stands for whichever server a reader has."""


def spell_derived(value: Derived) -> str:
    """Returns the name of what is filled in: `<id_of first>`."""
    return f"<{value.make.__name__} {', '.join(value.of)}>"


def spell_path(ask: Ask) -> str:
    """Returns the path of an ask, or the name of what makes it."""
    return spell_derived(ask.path) if isinstance(ask.path, Derived) else ask.path


def _spell(value: Any) -> Any:
    if isinstance(value, Derived):
        return spell_derived(value)
    if isinstance(value, Mapping):
        return {_spell(name): _spell(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(part) for part in value]
    return value


def sketch_curl(ask: Ask) -> str:
    """Returns the `curl` command of an ask, with `$BASE_URL`, `$MODEL` and `$API_KEY` for the shell to fill in, or for
    the reader where they stand in quotes.
    """
    raw = spell_derived(ask.raw).encode() if isinstance(ask.raw, Derived) else ask.raw
    sketch = replace(ask, path=spell_path(ask), body=_spell(ask.body), headers=_spell(ask.headers), raw=raw)
    request = fill(sketch, Filling(SKETCHED, "MARKER", 0, {}), is_scripted=False)
    line = curl_line(request.method, request.url, request.shown())
    return line.replace("'$BASE_URL", '"$BASE_URL"\'').replace("'$ADMIN_URL", '"$ADMIN_URL"\'').replace("\"''", '"')
