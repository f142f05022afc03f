"""From an ask to the bytes that are sent: placeholders, derived values, default headers. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tidegate.conformance.ask import Ask, Derived, Place
from tidegate.conformance.judge import Evidence
from tidegate.conformance.target import Target

USER_AGENT = "tidegate-conform"


@dataclass(frozen=True, slots=True)
class WireRequest:
    """`secret`: what of `data` must never be shown or kept; `data` holds it as it is sent."""

    url: str
    method: str
    head: bytes
    body: bytes
    json: Any
    secret: bytes | None

    def shown(self) -> bytes:
        """Returns all bytes, the credential replaced."""
        data = self.head + self.body
        return data.replace(self.secret, b"REDACTED") if self.secret else data


@dataclass(frozen=True, slots=True)
class Filling:
    """What placeholders stand for in one copy of an ask."""

    target: Target
    marker: str
    copy: int
    evidence: Evidence

    def value(self, value: Any) -> Any:
        """Returns the value with everything filled in. Raises CannotTell where an earlier answer does not allow it."""
        if isinstance(value, Derived):
            return value.make(*(self.evidence[name][0] for name in value.of), **value.args)
        if isinstance(value, str):
            names = {
                "model": self.target.model,
                "marker": self.marker,
                "marker_hex": self.marker.encode().hex(),
                "copy": str(self.copy),
            }
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        if isinstance(value, Mapping):
            return {self.value(name): self.value(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(part) for part in value]
        return value


def fill(ask: Ask, filling: Filling, *, is_scripted: bool) -> WireRequest:
    """Returns the request as it goes over the wire. Raises CannotTell and TargetError."""
    target = filling.target
    url = target.url_of(ask.place, filling.value(ask.path))
    body: Any = filling.value(ask.body)
    if ask.script is not None and is_scripted and isinstance(body, dict):
        body = body | {"x_script": filling.value(ask.script)}
    if ask.raw is not None:
        raw: bytes = filling.value(ask.raw)
        data = raw.replace(b"{model}", json.dumps(target.model)[1:-1].encode())
    else:
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    asks_admin = ask.place is Place.ADMIN or (ask.place is Place.METRICS and target.admin_url is not None)
    key = target.admin_token if asks_admin else target.api_key
    headers: dict[str, str | None] = {"Host": urlsplit(url).netloc, "User-Agent": USER_AGENT, "Accept": "*/*"}
    if data or ask.method in ("POST", "PUT", "PATCH"):
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    for name, value in ask.headers.items():
        known = next((other for other in headers if other.lower() == name.lower()), name)
        headers[known] = None if value is None else str(filling.value(value)).replace("{key}", key or "")
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{ask.method} {path} HTTP/1.1"] + [
        f"{name}: {value}" for name, value in headers.items() if value is not None
    ]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    return WireRequest(url, ask.method, head, data, body, key.encode() if key else None)
