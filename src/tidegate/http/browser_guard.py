"""Keeps web pages away from the admin listener: browsers reach loopback, whoever wrote the page.

Decides from two headers. A request with `Origin` was made by a page: no admin page exists, so it is refused. On
loopback `Host` must name loopback: a name of somebody else's that was made to resolve there (DNS rebinding) makes a
page the same origin, and then no `Origin` is sent. Behind another address a credential is demanded, which no page has.
"""

import ipaddress

from tidegate.errors import RouteNotAllowed
from tidegate.http.request_head import RequestHead


def refuse_browsers(head: RequestHead, *, is_local: bool) -> None:
    """Raises RouteNotAllowed for what a page may have sent. `is_local`: the listener is bound to loopback."""
    if "origin" in head.headers:
        raise RouteNotAllowed("The admin listener does not answer web pages.")
    host = head.headers.get("host")
    if is_local and host is not None and not _names_loopback(host):
        raise RouteNotAllowed("The Host header must name this machine: localhost, 127.0.0.1 or [::1].")


def _names_loopback(host: str) -> bool:
    name = host.strip()
    if name.startswith("["):
        name, _, rest = name[1:].partition("]")
        port = rest.removeprefix(":") if rest else ""
        if rest and not rest.startswith(":"):
            return False
    else:
        name, _, port = name.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return False
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
