"""How the start of an engine in an actor is named: by the actor's start and the engine's, alike for all servers."""

import asyncio

import pytest

from tidegate.engine.messages import EngineReady
from tidegate.engines.local.client import CommandLine, LocalEngine
from tidegate.engines.ray.boot_watch import EpochBook
from tidegate.engines.ray.ray_channel import RayChannel
from tidegate.engines.ray.wire import EventBatch, encode_events
from tidegate.inference.model_info import ModelInfo

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand")


class Greeted(LocalEngine):
    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.lives: list[str | None] = []

    def take_greeting(self, channel: CommandLine, greeting: EngineReady) -> None:
        self.lives.append(greeting.life)


async def greet(boot: str, epoch: int) -> str | None:
    owner = Greeted()
    channel = RayChannel("s", owner, EpochBook(), lambda _: None, 1.0)
    batch = EventBatch(boot, 1, 0, [EngineReady(epoch, MODEL)], None, is_draining=False, has_failed=False)
    await channel.take(encode_events(batch))
    return owner.lives[0]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [(("b1", 1), ("b1", 1), True), (("b1", 1), ("b2", 1), False), (("b1", 1), ("b1", 2), False)],
)
def test_two_starts_have_one_name_only_where_they_are_one(
    one: tuple[str, int], other: tuple[str, int], is_same: bool
) -> None:
    assert (asyncio.run(greet(*one)) == asyncio.run(greet(*other))) is is_same
