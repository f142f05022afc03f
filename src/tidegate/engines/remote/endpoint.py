"""Where a remote engine is, and how a request to it begins on the wire."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_VISIBLE = frozenset(map(chr, range(0x21, 0x7F)))


class UnusableUrl(ValueError):
    """The address of an engine cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`base_path` has no slash at its end. `api_key` goes into every request; None for engines without keys."""

    is_tls: bool
    host: str
    port: int
    base_path: str = ""
    api_key: str | None = None

    @property
    def url(self) -> str:
        """For people: without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.base_path}"

    def head(self, method: str, path: str, body_bytes: int | None, headers: tuple[tuple[str, str], ...] = ()) -> bytes:
        """Returns the head of a request; `body_bytes` is None for one without a body. `headers` are visible ASCII."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"{method} {self.base_path}{path} HTTP/1.1", f"Host: {host}:{self.port}", "User-Agent: tidegate"]
        if self.api_key is not None:
            lines.append(f"Authorization: Bearer {self.api_key}")
        lines += [f"{name}: {value}" for name, value in headers]
        if body_bytes is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {body_bytes}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def parse_endpoint(url: str, api_key: str | None = None) -> Endpoint:
    """Returns where `url` points to. Raises UnusableUrl."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UnusableUrl(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UnusableUrl(f"{url!r} is not an address such as http://127.0.0.1:8000")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise UnusableUrl(f"{url!r} must have no user, query or fragment; a key goes into a file of its own")
    if not _VISIBLE.issuperset(parts.path + parts.hostname):
        raise UnusableUrl(f"{url!r} must be plain ASCII without blanks")
    if api_key is not None and (not api_key or not _VISIBLE.issuperset(api_key)):
        raise UnusableUrl("the engine's API key must be visible ASCII characters, without blanks")
    return Endpoint(
        is_tls=parts.scheme == "https",
        host=parts.hostname,
        port=port if port is not None else _PORTS[parts.scheme],
        base_path=parts.path.rstrip("/"),
        api_key=api_key,
    )
