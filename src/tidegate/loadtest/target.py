"""Target: a server under load, and the requests that it is sent. Pure."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tidegate.loadtest.session import Json, Message, Turn


class TargetError(Exception):
    """The address cannot be used; the message says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`label` tells servers of one run apart. `base_url` ends in the version, without a slash.

    `api`: `chat` or `completions`. `extra`: members that every body gets.
    """

    label: str
    base_url: str
    model: str = ""
    api_key: str | None = None
    api: str = "chat"
    temperature: float | None = 0.0
    extra: Json = field(default_factory=dict)

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        parts = urlsplit(self.base_url)
        return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def path(self) -> str:
        """Where the load goes."""
        return urlsplit(self.base_url).path + ("/chat/completions" if self.api == "chat" else "/completions")

    @property
    def models_path(self) -> str:
        return urlsplit(self.base_url).path + "/models"


def read_base_url(text: str) -> str:
    """Returns the address with `/v1` at its end, without a slash. Raises TargetError."""
    try:
        parts = urlsplit(text if "//" in text else f"http://{text}")
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise TargetError(f"{text!r} is not an address of a server: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port or not text.isprintable():
        raise TargetError(f"{text!r} is not an address of a server; one looks like http://127.0.0.1:8000/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise TargetError("the address holds more than host, port and path; a credential goes into --api-key")
    path = parts.path.rstrip("/")
    if not path.rpartition("/")[2].startswith("v1"):
        path += "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


def check_key(key: str | None) -> str | None:
    """Returns a key that can stand in a header, or None. Raises TargetError."""
    if not key:
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise TargetError("the API key holds characters that cannot stand in a header")
    return key


def body_of(target: Target, turn: Turn, messages: list[Message]) -> bytes:
    """Returns the body that asks this turn. `messages`: history and the turn's own.

    A turn with a prompt goes to completions as it stands, and to chat as a user's message.
    """
    body: dict[str, Any] = {"model": target.model, "stream": True, "stream_options": {"include_usage": True}}
    body["max_tokens"] = turn.max_tokens
    if target.temperature is not None:
        body["temperature"] = target.temperature
    if target.api == "chat":
        body["messages"] = messages or [{"role": "user", "content": turn.prompt}]
    else:
        body["prompt"] = turn.prompt if turn.prompt is not None else flatten(messages)
    return msgspec.json.encode(body | target.extra | turn.extra)


def flatten(messages: list[Message]) -> str:
    """Returns a chat as one text, for completions."""
    return "\n\n".join(str(message.get("content") or "") for message in messages)


def request_of(target: Target, method: str, path: str, body: bytes | None = None) -> bytes:
    """Returns the bytes of one request."""
    _, host, port = target.origin
    shown = f"[{host}]" if ":" in host else host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {shown}" if port in (80, 443) else f"Host: {shown}:{port}"]
    lines += ["User-Agent: tidegate-bench", "Accept-Encoding: identity"]
    if target.api_key is not None:
        lines.append(f"Authorization: Bearer {target.api_key}")
    if body is not None:
        lines += ["Accept: text/event-stream", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
