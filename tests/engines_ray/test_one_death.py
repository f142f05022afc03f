"""One death of an engine on Ray is one for all servers that use it, and the next one is another: without Ray."""

import asyncio
from itertools import count

import pytest

from harness.host_scene import QUICK, HostScene
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.ray_link import RayLink
from tidegate.errors import EngineRefused
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.testing.check_engine import RecordingSink


async def share(scene: HostScene, poison: list[PoisonWatch]) -> list[RayLink]:
    """Joins two servers to the scene's actor, which tell each other what they hold against requests."""
    poison[0].on_blame, poison[1].on_blame = poison[1].take, poison[0].take
    names = count(1)
    links = [
        RayLink(
            "an-actor",
            LocalEngine(scene.reports.append, poison=one),
            scene.door,
            QUICK,
            lambda: f"x{next(names)}",
            scene.notes.append,
        )
        for one in poison
    ]
    for link in links:
        link.start()
    await scene.until(lambda: all(link.engine.is_ready for link in links))
    return links


@pytest.mark.parametrize("dies", ["actor", "engine in the actor"])
def test_a_death_that_two_servers_saw_counts_once_and_the_next_one_again(dies: str) -> None:
    async def act(scene: HostScene) -> None:
        poison = [PoisonWatch(), PoisonWatch()]
        links = await share(scene, poison)
        for number in (1, 2):
            sinks = [RecordingSink() for _ in links]
            for link, sink in zip(links, sinks, strict=True):
                link.engine.submit(scene.make_request(f"r{number}", max_tokens=100_000), sink)
            host = scene.door.host
            assert host is not None
            await scene.until(lambda host=host: host.num_active == 2)  # type: ignore[misc]
            if dies == "actor":
                scene.door.die()
            else:
                scene.door.pair.restart()
            await scene.until(lambda sinks=sinks: all(sink.has_ended for sink in sinks))  # type: ignore[misc]
            await scene.until(lambda: scene.engine.is_ready and all(link.engine.is_ready for link in links))
            assert [len(blame.deaths) for one in poison for blame in one.blames()] == [number, number]
        for link in links:
            with pytest.raises(EngineRefused):
                link.engine.submit(scene.make_request("third", max_tokens=100_000), RecordingSink())
            await link.aclose()

    async def go() -> None:
        async with HostScene() as scene:
            await act(scene)

    asyncio.run(go())
