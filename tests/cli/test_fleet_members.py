"""What keeps engines from joining a model."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from tidegate.cli.fleet_members import MAX_ENGINES, FleetMembers
from tidegate.errors import UnsupportedParameter


def _members_and_site(num_engines: int, *, has_pool: bool = True) -> tuple[FleetMembers, Any]:
    """A fleet that can start nothing: what is refused is refused before it is asked."""
    site = SimpleNamespace(
        engines=SimpleNamespace(parts=dict.fromkeys(range(num_engines)), pool=object() if has_pool else None)
    )
    fleet: Any = SimpleNamespace(sites=(site,))
    followers: Any = None
    return FleetMembers(fleet, followers, structlog.get_logger()), site


def test_no_model_gets_more_engines_than_the_bound() -> None:
    members, site = _members_and_site(MAX_ENGINES)
    with pytest.raises(UnsupportedParameter, match=str(MAX_ENGINES)):
        asyncio.run(members.add(site))
    assert not members.is_changing


def test_a_server_of_one_engine_says_which_setting_allows_others() -> None:
    members, site = _members_and_site(1, has_pool=False)
    with pytest.raises(UnsupportedParameter, match=r"engine\.max_replicas"):
        asyncio.run(members.add(site))
