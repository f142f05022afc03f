"""The public routes by their patterns, known without a server: for checking what keys may use."""

from typing import cast

from tidegate.http.router import Router
from tidegate.http.routes_api import OPEN_API_PATHS, api_routes
from tidegate.http.service_port import Service
from tidegate.http.settings import HttpSettings
from tidegate.http.stream_watch import StreamWatch


class _Nobody:
    """Has every method, and none of them is ever called: routes are listed, not asked."""

    def __getattr__(self, name: str) -> None:
        return None


def routes_behind_keys() -> frozenset[str]:
    """Returns the patterns of all routes that need a key once there is one."""
    nobody = _Nobody()
    router = Router(api_routes(cast("Service", nobody), HttpSettings(), cast("StreamWatch", nobody)))
    return frozenset(pattern for pattern in router.patterns if pattern.encode() not in OPEN_API_PATHS)
