"""What is in a Ray cluster: the actors by their names, and the groups of bundles. Holds a tie of this process to it."""

import asyncio
from typing import Any

from harness.server_thread import wait_until
from tidegate.engines.ray.actor_door import ActorFacts
from tidegate.engines.ray.cluster import CLUSTER, ClusterAddress

PATIENCE_S = 60.0


class RayView:
    """Used as a context manager. While it is open no server of this process is the last that lets go of Ray."""

    def __init__(self, address: str, namespace: str) -> None:
        self._where = ClusterAddress(address, namespace)

    def __enter__(self) -> "RayView":
        self._ray = CLUSTER.attach(self._where)
        return self

    def __exit__(self, *_: object) -> None:
        CLUSTER.release()

    def actors(self) -> set[str]:
        """Returns the names of the actors that live, or are to live."""
        named: list[dict[str, str]] = self._ray.util.list_named_actors(all_namespaces=True)
        return {one["name"] for one in named if one["namespace"] == self._where.namespace}

    def bundles(self) -> set[str]:
        """Returns the names of the groups of bundles that are there, or asked for."""
        table: dict[str, dict[str, Any]] = self._ray.util.placement_group_table()
        return {one["name"] for one in table.values() if one["state"] != "REMOVED"}

    def facts(self, actor: str) -> ActorFacts:
        """Asks an actor who it is."""
        handle = self._ray.get_actor(actor, namespace=self._where.namespace)

        async def ask() -> ActorFacts:
            return ActorFacts(*await asyncio.wait_for(handle.identify.remote(), 60.0))

        return asyncio.run(ask())

    def check_empty(self) -> None:
        """Fails, and tidies up, where something is left after a while."""
        try:
            wait_until(lambda: not self.actors() and not self.bundles(), "nothing is left in Ray", PATIENCE_S)
        finally:
            for name in self.actors():
                self._ray.kill(self._ray.get_actor(name, namespace=self._where.namespace))
