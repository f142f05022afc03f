"""The head of one request: everything before the body, checked against its limits.

Decides only from what the client sent as request target and headers; never from a URL rebuilt out of `Host`.
"""

import re
from dataclasses import dataclass

from tidegate.contract import headers as names
from tidegate.errors import HeadersTooLarge, InvalidValue, LimitFact, UriTooLong
from tidegate.http.asgi import Scope
from tidegate.http.connection_abort import Line
from tidegate.http.settings import HttpSettings
from tidegate.ids import mint_id

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_BYTES_PER_HEADER = 4  # ": " and CRLF

_VERSIONS = ("1.0", "1.1")
_OTHER_NAMES = {"1": "1.0"}  # granian's

REQUEST_ID_ENTROPY_BYTES = 24


@dataclass(frozen=True, slots=True)
class RequestHead:
    """`path` is the raw path, percent-encoding kept. Repeated headers are joined with a comma (RFC 9110, 5.3).

    `peer` is the client's address and port, None where the transport has none; `local_port` is the port that it came
    to. `query` is what stands behind `?`.
    """

    method: str
    path: bytes
    headers: dict[str, str]
    num_header_bytes: int
    num_uri_bytes: int
    num_hosts: int
    http_version: str
    peer: tuple[str, int] | None
    query: bytes = b""
    local_port: int | None = None
    is_tls: bool = False

    @property
    def line(self) -> Line | None:
        """The connection that the request came on; None where the transport does not say."""
        if self.peer is None or self.local_port is None:
            return None
        return (*self.peer, self.local_port)

    @property
    def content_length(self) -> int | None:
        """The declared length of the body; None when there is none or it is not a number."""
        text = self.headers.get("content-length", "").strip(" \t")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    @property
    def has_body(self) -> bool:
        return bool(self.content_length) or "transfer-encoding" in self.headers

    @property
    def is_framing_doubtful(self) -> bool:
        """Whether others may see the end of this request elsewhere than the server does (RFC 9112, 6.1 and 6.3).

        HTTP servers differ in what they let pass here: nothing that follows on such a connection can be trusted.
        """
        coding = self.headers.get("transfer-encoding")
        if self.http_version not in _VERSIONS:
            return True
        if coding is None:
            return "content-length" in self.headers and self.content_length is None
        return coding.strip().lower() != "chunked" or "content-length" in self.headers or self.http_version == "1.0"


def read_head(scope: Scope) -> RequestHead:
    """Reads an ASGI scope; raises nothing."""
    headers: dict[str, str] = {}
    num_header_bytes = 0
    num_hosts = 0
    for raw_name, raw_value in scope["headers"]:
        num_header_bytes += len(raw_name) + len(raw_value) + _BYTES_PER_HEADER
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1").strip(" \t")  # not part of it (RFC 9110, 5.5); not all servers strip it
        num_hosts += name == "host"
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    query = scope.get("query_string") or b""
    server = _read_address(scope.get("server"))
    version: str = scope.get("http_version", "1.1")
    return RequestHead(
        method=scope["method"],
        path=path,
        headers=headers,
        num_header_bytes=num_header_bytes,
        num_uri_bytes=len(path) + (len(query) + 1 if query else 0),
        num_hosts=num_hosts,
        http_version=_OTHER_NAMES.get(version, version),
        peer=_read_address(scope.get("client")),
        query=query,
        local_port=None if server is None else server[1],
        is_tls=scope.get("scheme") == "https",
    )


def check_head(head: RequestHead, settings: HttpSettings) -> None:
    """Raises UriTooLong, HeadersTooLarge, or InvalidValue for doubtful framing or more than one `Host` (RFC 9112, 3.2).

    A missing one is no fault here: granian puts an empty one in its place, and nothing of ours reads it.
    """
    if head.num_uri_bytes > settings.uri_bytes:
        limit = LimitFact(name="uri_bytes", value=settings.uri_bytes, actual=head.num_uri_bytes)
        raise UriTooLong(f"The path and query are longer than {limit.value} bytes.", limit=limit)
    if head.num_header_bytes > settings.header_bytes:
        limit = LimitFact(name="header_bytes", value=settings.header_bytes, actual=head.num_header_bytes)
        raise HeadersTooLarge(f"The headers are larger than {limit.value} bytes.", limit=limit)
    if head.is_framing_doubtful:
        raise InvalidValue("The end of the request is not certain: its version, Content-Length or Transfer-Encoding.")
    if head.num_hosts > 1:
        raise InvalidValue("The request has more than one Host header.")


def is_request_id(text: str) -> bool:
    """Whether a caller's id of a request is taken as it is."""
    return _REQUEST_ID.fullmatch(text) is not None


def choose_request_id(head: RequestHead, entropy: bytes) -> str:
    """Returns the caller's id when it is well formed, else one minted from `entropy`."""
    given = head.headers.get(names.IN_REQUEST_ID, "")
    return given if is_request_id(given) else mint_id("req_", entropy)


def _read_address(given: object) -> tuple[str, int] | None:
    # One server gives the port as an int, another as a str; a Unix socket gives neither.
    match given:
        case [str(host), int(port)]:
            return host, port
        case [str(host), str(port)] if port.isdigit():
            return host, int(port)
        case _:
            return None
