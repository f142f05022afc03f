"""An ask as it looks before anything was answered: what earlier answers will fill in stands there as a name. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.reports.curl_line import MAX_CURL_BODY_BYTES, curl_line
from tidegate.conformance.wire.fill import Filling, fill
from tidegate.conformance.wire.target import Target

_BASE, _ADMIN, _MODEL = "http://base.invalid", "http://admin.invalid", "MODEL-NAME"
_SKETCHED = Target(base_url=f"{_BASE}/v1", api_key="API-KEY", model=_MODEL, admin_url=_ADMIN)
"""Stands for whichever server a reader has."""


def spell_derived(value: Derived) -> str:
    """Returns the name of what is filled in: `<id_of first>`."""
    return f"<{' '.join((value.make.__name__, ', '.join(value.of))).rstrip()}>"


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


def sketch_curl(ask: Ask, *, max_body_bytes: int = MAX_CURL_BODY_BYTES) -> str:
    """Returns the `curl` command of an ask; the shell fills in `$BASE_URL` (without /v1), `$MODEL` and `$API_KEY`."""
    raw = spell_derived(ask.raw).encode() if isinstance(ask.raw, Derived) else ask.raw
    sketch = replace(ask, path=spell_path(ask), body=_spell(ask.body), headers=_spell(ask.headers), raw=raw)
    request = fill(sketch, Filling(_SKETCHED, "MARKER", 0, {}), is_scripted=False)
    line = curl_line(request.method, request.url, request.shown(), max_body_bytes=max_body_bytes)
    for stand_in, name in ((_BASE, "BASE_URL"), (_ADMIN, "ADMIN_URL")):
        line = line.replace(f"'{stand_in}", f'"${name}"\'').replace(stand_in, f'"${name}"')
    parts = line.split(_MODEL)
    for position in range(1, len(parts)):
        is_quoted = sum(part.count("'") for part in parts[:position]) % 2
        parts[position] = ("'\"$MODEL\"'" if is_quoted else '"$MODEL"') + parts[position]
    return "".join(parts)
