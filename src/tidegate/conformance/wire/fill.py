"""From an ask to the bytes that are sent: placeholders, derived values, default headers. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from tidegate.conformance.ask import Ask, Derived, Place
from tidegate.conformance.judge import Evidence
from tidegate.conformance.wire.redaction import REDACTED, Redaction
from tidegate.conformance.wire.target import Target

USER_AGENT = "tidegate-conform"


def endless(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a body with `max_tokens` and the extensions by which an answer goes on until then: some servers know
    `ignore_eos`, some `min_tokens`.
    """
    return {**body, "ignore_eos": True, "min_tokens": body["max_tokens"]}


@lru_cache(maxsize=16)
def _redaction(api_key: str | None, admin_token: str | None) -> Redaction:
    return Redaction((api_key, admin_token))


@dataclass(frozen=True, slots=True)
class WireRequest:
    """`head` and `body` as they are sent; `shown_head` is the head without the credential that it is sent with."""

    url: str
    method: str
    head: bytes
    shown_head: bytes
    body: bytes
    json: Any
    marker: str
    copy: int
    redaction: Redaction

    def shown(self) -> bytes:
        """Returns all bytes, credentials replaced."""
        return self.redaction.of_request(self.shown_head + self.body)


@dataclass(frozen=True, slots=True)
class Filling:
    """What placeholders stand for in one copy of an ask."""

    target: Target
    marker: str
    copy: int
    evidence: Evidence
    seed: int = 0

    def value(self, value: Any) -> Any:
        """Returns the value with everything filled in. Raises CannotTell where an earlier answer does not allow it."""
        if isinstance(value, Derived):
            args = {k: self.value(v) if isinstance(v, str | Mapping) else v for k, v in value.args.items()}
            return value.make(*(self.evidence[name][0] for name in value.of), **args)
        if value == "{seed}":
            return self.seed
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


def fill(ask: Ask, filling: Filling, *, is_scripted: bool, ignores_eos: bool = False) -> WireRequest:
    """Returns the request as it goes over the wire. `ignores_eos`: the server obeys those extensions. Raises CannotTell
    and TargetError.
    """
    target = filling.target
    url = target.url_of(ask.place, filling.value(ask.path))
    body: Any = filling.value(ask.body)
    if ask.script is not None and is_scripted and isinstance(body, dict):
        body = body | {"x_script": filling.value(ask.script)}
    elif ask.is_endless and ignores_eos and isinstance(body, dict):
        body = endless(body)
    if ask.raw is not None:
        raw: bytes = filling.value(ask.raw)
        data = raw.replace(b"{model}", json.dumps(target.model)[1:-1].encode())
    else:
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    asks_admin = ask.place is Place.ADMIN or (ask.place is Place.METRICS and target.admin_url is not None)
    key = target.admin_token if asks_admin else target.api_key
    headers = _headers(ask, filling, url, data, key)
    return WireRequest(
        url=url,
        method=ask.method,
        head=_head(ask.method, url, headers, key or ""),
        shown_head=_head(ask.method, url, headers, REDACTED.decode() if key else ""),
        body=data,
        json=body,
        marker=filling.marker,
        copy=filling.copy,
        redaction=_redaction(target.api_key, target.admin_token),
    )


def _headers(ask: Ask, filling: Filling, url: str, data: bytes, key: str | None) -> list[tuple[str, str]]:
    """Returns the headers; `{key}` in them stands for the credential."""
    headers: dict[str, Any] = {"Host": urlsplit(url).netloc, "User-Agent": USER_AGENT, "Accept": "*/*"}
    if data or ask.method in ("POST", "PUT", "PATCH"):
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    if key:
        headers["Authorization"] = "Bearer {key}"
    for name, value in ask.headers.items():
        known = next((other for other in headers if other.lower() == name.lower()), name)
        headers[known] = filling.value(value)
    lines = [(name, value if isinstance(value, list) else [value]) for name, value in headers.items()]
    return [(name, str(value)) for name, values in lines for value in values if value is not None]


def _head(method: str, url: str, headers: Sequence[tuple[str, str]], key: str) -> bytes:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{name}: {value.replace('{key}', key)}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
