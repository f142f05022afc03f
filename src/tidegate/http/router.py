"""Method and path to handler: a dict, and prefixes.

Decides which handler serves a request target. A path matches as it was spelled, byte for byte: other spellings
(`//`, a trailing slash, `%2f`, other case) are other paths. It does not know who may call: that is decided before.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from tidegate.errors import MethodNotAllowed, RouteNotFound
from tidegate.http.exchange import Exchange

Handler = Callable[[Exchange], Awaitable[None]]

UNMATCHED = "unmatched"


@dataclass(frozen=True, slots=True)
class Route:
    """`{id}` in `pattern` stands for an argument, which may hold `/`: the rest of the path, or what a suffix leaves."""

    method: str
    pattern: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Match:
    """`handler` is None for OPTIONS. `argument` is the rest of the path, percent-decoded, where there is one."""

    pattern: str
    allow: tuple[str, ...]
    handler: Handler | None
    argument: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    pattern: str
    methods: dict[str, Handler]
    prefix: bytes = b""
    suffix: bytes = b""
    """What stands before and behind the argument."""


class Router:
    """Built once from its routes; immutable."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._exact: dict[bytes, _Entry] = {}
        self._with_argument: dict[bytes, _Entry] = {}
        for route in routes:
            key = route.pattern.encode()
            prefix, mark, suffix = key.partition(b"{id}")
            table = self._with_argument if mark else self._exact
            entry = table.setdefault(key, _Entry(route.pattern, {}, prefix, suffix))
            entry.methods[route.method] = route.handler

    @property
    def patterns(self) -> dict[str, tuple[str, ...]]:
        """Every pattern, with the methods it allows."""
        return {
            entry.pattern: _allowed(entry.methods) for entry in (*self._exact.values(), *self._with_argument.values())
        }

    def locate(self, method: str, path: bytes) -> Match:
        """Finds the handler for a method and a raw path. HEAD finds GET's handler.

        Raises RouteNotFound, or MethodNotAllowed with what the route does allow.
        """
        found = self._find(path)
        if found is None:
            raise RouteNotFound("No route has this path.")
        entry, rest = found
        allow = _allowed(entry.methods)
        argument = _decode(rest) if rest else None
        if method == "OPTIONS":
            return Match(entry.pattern, allow, None, argument)
        handler = entry.methods.get("GET" if method == "HEAD" else method)
        if handler is None:
            raise MethodNotAllowed(f"This route allows {', '.join(allow)}.", allow=allow)
        return Match(entry.pattern, allow, handler, argument)

    def pattern_of(self, path: bytes) -> str:
        """The pattern that a raw path belongs to, or `unmatched`."""
        found = self._find(path)
        return UNMATCHED if found is None else found[0].pattern

    def _find(self, path: bytes) -> tuple[_Entry, bytes] | None:
        exact = self._exact.get(path)
        if exact is not None:
            return exact, b""
        for entry in self._with_argument.values():
            num_fixed = len(entry.prefix) + len(entry.suffix)
            if len(path) > num_fixed and path.startswith(entry.prefix) and path.endswith(entry.suffix):
                return entry, path[len(entry.prefix) : len(path) - len(entry.suffix)]
        return None


def _allowed(methods: Mapping[str, object]) -> tuple[str, ...]:
    return (*methods, "HEAD", "OPTIONS") if "GET" in methods else (*methods, "OPTIONS")


def _decode(rest: bytes) -> str:
    try:
        return unquote(rest.decode("ascii"), errors="strict")
    except UnicodeDecodeError:
        raise RouteNotFound("The path is not UTF-8.") from None
