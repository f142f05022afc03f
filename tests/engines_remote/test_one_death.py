"""One death of a remote engine is one for all server processes that use it, and the next one is another."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from harness.engine_scene import PATIENCE_S
from harness.remote_scene import FACTS, QUICK, RemoteScene
from harness.vllm_speech import VllmSpeech
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.endpoint import parse_endpoint
from tidegate.engines.remote.http_carrier import HttpCarrier
from tidegate.engines.remote.watch import RemoteWatch
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.errors import EngineRefused
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.testing.check_engine import RecordingSink


class Sharers:
    """Two server processes' ways to one engine; they tell each other what they hold against requests."""

    def __init__(self, scene: RemoteScene) -> None:
        self.scene = scene
        self.watches: list[RemoteWatch] = []
        self.poison = [PoisonWatch(), PoisonWatch()]
        self.poison[0].on_blame, self.poison[1].on_blame = self.poison[1].take, self.poison[0].take

    async def join(self) -> None:
        loop = asyncio.get_running_loop()
        for poison in self.poison:
            carrier = HttpCarrier(ConnectionPool(parse_endpoint(self.scene.stand_in.url, None), loop.time))
            engine = RemoteEngine(carrier, lambda _: None, call_soon=loop.call_soon, now=loop.time, poison=poison)
            self.watches.append(RemoteWatch(engine, VllmKind(FACTS), carrier, QUICK, lambda _: None))
            self.watches[-1].start()
        await self.wait_ready()

    async def wait_ready(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            for watch in self.watches:
                await watch.wait_ready()

    async def die_with(self, name: str) -> None:
        """Both have the same request in the engine when it dies; it comes back."""
        sinks = [RecordingSink() for _ in self.watches]
        for watch, sink in zip(self.watches, sinks, strict=True):
            watch.engine.submit(self.scene.make_request(name, max_tokens=2000), sink)
        await self.scene.stand_in.die()
        await self.scene.until(lambda: all(sink.has_ended for sink in sinks))
        await self.scene.until(lambda: not any(watch.engine.is_ready for watch in self.watches))
        await self.scene.stand_in.start()
        await self.wait_ready()

    async def aclose(self) -> None:
        for watch in self.watches:
            await watch.aclose()


@pytest.mark.parametrize("has_boots", [True, False], ids=["starts are told apart", "starts are not told apart"])
def test_a_death_that_two_processes_saw_counts_once_and_the_next_one_again(has_boots: bool) -> None:
    async def act() -> None:
        speech = VllmSpeech()
        async with RemoteScene(speech, VllmKind) as scene, AsyncExitStack() as stack:
            sharers = Sharers(scene)
            stack.push_async_callback(sharers.aclose)
            await sharers.join()
            await sharers.die_with("first")
            assert [len(blame.deaths) for poison in sharers.poison for blame in poison.blames()] == [1, 1]
            speech.boot = 2000.0 if has_boots else speech.boot
            await sharers.die_with("second")
            for watch in sharers.watches:
                with pytest.raises(EngineRefused):
                    watch.engine.submit(scene.make_request("third", max_tokens=2000), RecordingSink())

    asyncio.run(act())


def test_a_connection_that_one_process_lost_before_does_not_make_two_of_the_next_start_s_death() -> None:
    async def act() -> None:
        speech = VllmSpeech()
        async with RemoteScene(speech, VllmKind) as scene, AsyncExitStack() as stack:
            sharers = Sharers(scene)
            stack.push_async_callback(sharers.aclose)
            await sharers.join()
            sharers.watches[0].engine.lose("its wires were cut")
            speech.boot = 2000.0
            await scene.stand_in.die()
            await scene.until(lambda: not sharers.watches[1].engine.is_ready)
            await scene.stand_in.start()
            await sharers.wait_ready()
            await sharers.die_with("the first")
            assert [len(blame.deaths) for poison in sharers.poison for blame in poison.blames()] == [1, 1]

    asyncio.run(act())


def test_the_end_of_a_server_process_blames_nobody() -> None:
    async def act() -> None:
        async with RemoteScene(VllmSpeech(), VllmKind) as scene:
            sharers = Sharers(scene)
            await sharers.join()
            first, second = sharers.watches
            first.engine.submit(scene.make_request("open", max_tokens=2000), RecordingSink())
            await first.aclose()
            assert second.engine.statistics().num_poison_suspects == 0
            await second.aclose()

    asyncio.run(act())
