"""Target: the server that is asked, and what the caller allows."""

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from tidegate.conformance.ask import Place

REQUEST_TIMEOUT_S = 60.0


class TargetError(Exception):
    """The address cannot be used; the message says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`base_url` ends in the version (`http://host:8000/v1`). `admin_url` and `admin_token` are Tidegate's own."""

    base_url: str
    api_key: str | None = None
    model: str = ""
    admin_url: str | None = None
    admin_token: str | None = None
    may_drain: bool = False
    seed: int = 0
    timeout_s: float = REQUEST_TIMEOUT_S

    def url_of(self, place: Place, path: str) -> str:
        """Returns the whole address. Raises TargetError where the place is not known."""
        if place is Place.API:
            return self.base_url + path
        if place is Place.ROOT or (place is Place.METRICS and self.admin_url is None):
            parts = urlsplit(self.base_url)
            return f"{parts.scheme}://{parts.netloc}{path}"
        if self.admin_url is None:
            raise TargetError("this case asks the admin listener: give --admin-url")
        return self.admin_url + path


def read_base_url(text: str) -> str:
    """Returns the address with `/v1` at its end, without a slash. Raises TargetError."""
    try:
        parts: SplitResult = urlsplit(text if "//" in text else f"http://{text}")
        has_port_that_is_one = parts.port is None or parts.port > 0
    except ValueError as error:
        raise TargetError(f"{text!r} is not an address of a server: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port_that_is_one:
        raise TargetError(f"{text!r} is not an address of a server; one looks like http://127.0.0.1:8000/v1")
    if "@" in parts.netloc:
        raise TargetError("the address holds a user name or a password; give the credential with --api-key")
    if parts.query or parts.fragment:
        raise TargetError(f"{text!r} has a query or a fragment; give the address without")
    path = parts.path.rstrip("/")
    if not path.rpartition("/")[2].startswith("v1"):
        path += "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"
