"""Engines in actors of a real Ray cluster: the shipped checks of the `Engine` port, and what faults do."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from harness.byte_folder import write_byte_folder
from harness.ray_cluster import RayClusterProcess
from harness.ray_scene import LEASE_S, SIMULATED, RayScene
from harness.stand_in_vllm_actor import StandInVllmActor
from tidegate.cli.model_loading import load_model
from tidegate.cli.model_source import find_model
from tidegate.cli.ray_keeper import hosted_spec
from tidegate.cli.settings_sources import resolve
from tidegate.cli.vllm_actor import VllmActor
from tidegate.engine.options import EngineOptions
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.ray.actor_spec import HostedEngineSpec
from tidegate.errors import EngineLost, InvalidValue, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.testing.check_engine import (
    CHECKS,
    Check,
    RecordingSink,
    check_abort_is_idempotent_and_ends,
    check_every_choice_ends_once,
    check_token_counts_add_up,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SHARED = "checks"
"""The actor of the tests that leave it as it was."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayClusterProcess]:
    with RayClusterProcess() as running:
        yield running


def run(cluster: RayClusterProcess, act: Callable[[RayScene], Awaitable[None]], name: str = SHARED) -> None:
    async def go() -> None:
        async with RayScene(cluster.address, name) as scene:
            await act(scene)

    asyncio.run(go())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_engine_in_an_actor_keeps_the_port(cluster: RayClusterProcess, check: Check) -> None:
    run(cluster, check)


async def begin(scene: RayScene, *names: str, max_tokens: int = 100_000) -> list[RecordingSink]:
    sinks = [RecordingSink() for _ in names]
    for name, sink in zip(names, sinks, strict=True):
        scene.engine.submit(scene.make_request(name, max_tokens=max_tokens), sink)
    await scene.until(lambda: all(any(sink.token_ids) for sink in sinks))
    return sinks


async def serve_one(scene: RayScene, name: str) -> None:
    sink = RecordingSink()
    scene.engine.submit(scene.make_request(name), sink)
    await scene.until(lambda: sink.has_ended)
    assert sink.finishes == {0: EngineFinish.LENGTH}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_each_request_of_a_lost_actor_fails_once_and_the_next_boot_serves(
    cluster: RayClusterProcess, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    async def act(scene: RayScene) -> None:
        before = await scene.door.identify()
        sinks = await begin(scene, *(f"open-{i}" for i in range(16)))
        await scene.signal(number)
        await scene.until(lambda: all(sink.has_ended for sink in sinks))
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)
        assert scene.engine.statistics().gauges.num_running == 0
        await scene.until(lambda: scene.engine.is_ready)
        after = await scene.door.identify()
        assert after.boot != before.boot
        assert after.num_active == 0
        await serve_one(scene, "after")
        for sink in sinks:
            sink.check()

    run(cluster, act)
    assert capfd.readouterr().out == "", "Ray's reports go to the log"


def test_a_restart_of_the_engine_is_a_new_epoch_of_the_same_boot(cluster: RayClusterProcess) -> None:
    async def act(scene: RayScene) -> None:
        before, epoch = await scene.door.identify(), scene.engine.statistics().epoch
        (sink,) = await begin(scene, "open")
        assert await scene.door.restart_engine(None)
        await scene.until(lambda: sink.has_ended and scene.engine.is_ready)
        assert (await scene.door.identify()).boot == before.boot
        assert scene.engine.statistics().epoch == epoch + 1
        await serve_one(scene, "after")

    run(cluster, act)


def test_two_servers_share_an_actor_and_the_going_of_one_leaves_the_others_requests(cluster: RayClusterProcess) -> None:
    async def act(scene: RayScene) -> None:
        (mine,) = await begin(scene, "same id")
        async with RayScene(cluster.address, SHARED) as other:
            (theirs,) = await begin(other, "same id")
            facts = await scene.door.identify()
            assert (facts.num_active, facts.num_servers) == (2, 2)
        assert isinstance(theirs.error, EngineLost)
        await until_active(scene, 1)
        assert not mine.has_ended
        scene.engine.abort("same id")
        await scene.until(lambda: mine.has_ended)

    run(cluster, act)


def test_a_server_that_only_goes_silent_is_aborted_within_its_lease(cluster: RayClusterProcess) -> None:
    async def act(scene: RayScene) -> None:
        async with RayScene(cluster.address, SHARED) as other:
            # So many that none ends by itself meanwhile, and their outputs show that the actor lives.
            sinks = await begin(other, *(f"orphan-{i}" for i in range(64)))
            channel = other.link._channel
            assert channel is not None
            channel.beat = lambda: None  # type: ignore[method-assign]
            loop = asyncio.get_running_loop()
            began_at = loop.time()
            await until_active(scene, 0)
            assert loop.time() - began_at > LEASE_S / 2
            await other.until(lambda: all(sink.has_ended for sink in sinks))
            assert all(isinstance(sink.error, EngineLost) for sink in sinks)

    run(cluster, act)


async def until_active(scene: RayScene, number: int) -> None:
    async with asyncio.timeout(60):
        while (await scene.door.identify()).num_active != number:
            await asyncio.sleep(0.05)


def test_an_actor_made_with_other_settings_is_not_served(cluster: RayClusterProcess) -> None:
    async def go() -> None:
        async with RayScene(cluster.address, SHARED) as scene:
            other = RayScene(cluster.address, SHARED, msgspec.structs.replace(SIMULATED, lease_s=9.0))
            with pytest.raises(EngineStartFailed, match="other settings"):
                await other.__aenter__()
            await other.link.aclose()
            assert not await other.door.retire(RayScene.patience_s), "it is not ours to end"
            await serve_one(scene, "after")

    asyncio.run(go())


def vllm_spec(folder: Path) -> HostedEngineSpec:
    named = {"engine.kind": "ray", "engine.ray_engine": "vllm", "model.source": str(write_byte_folder(folder))}
    settings = resolve(None, {}, {**named, "engine.restart_wait_s": 0.01}, is_file_required=False).settings
    return msgspec.structs.replace(hosted_spec(settings, load_model(settings)), lease_s=LEASE_S)


def test_vllm_in_an_actor_keeps_the_port_and_is_replaced_when_its_process_dies(
    cluster: RayClusterProcess, tmp_path: Path
) -> None:
    """Its library is a stand-in: what is checked is all that is around it."""

    async def go() -> None:
        spec = vllm_spec(tmp_path)
        async with RayScene(cluster.address, "vllm", spec, actor_class=StandInVllmActor) as scene:
            for check in CHECKS:
                await check(scene)
            await scene.until(lambda: scene.engine.is_ready)
            epoch = scene.engine.statistics().epoch
            (sink,) = await begin(scene, "open", max_tokens=4_000)
            assert await scene.door.restart_engine(None)
            await scene.until(lambda: sink.has_ended and scene.engine.is_ready)
            assert isinstance(sink.error, EngineLost)
            assert scene.engine.statistics().epoch == epoch + 1
            refused = RecordingSink()
            request = scene.make_request("refused")
            scene.engine.submit(msgspec.structs.replace(request, num_logprobs=999), refused)
            await scene.until(lambda: refused.has_ended)
            assert isinstance(refused.error, InvalidValue | UnsupportedParameter), "the carrier's checks are made there"
            await serve_one(scene, "after")
            await scene.link.aclose()
            assert await scene.door.retire(RayScene.patience_s)

    asyncio.run(go())


def test_where_vllm_is_not_installed_the_server_says_what_is_missing_on_that_machine(
    cluster: RayClusterProcess, tmp_path: Path
) -> None:
    async def go() -> None:
        scene = RayScene(cluster.address, "no-vllm", vllm_spec(tmp_path), actor_class=VllmActor)
        with pytest.raises(EngineStartFailed, match="not installed: pip install 'tidegate"):
            await scene.__aenter__()
        await scene.link.aclose()
        assert await scene.door.retire(RayScene.patience_s)

    asyncio.run(go())


@pytest.mark.model
def test_llama_cpp_in_an_actor_keeps_the_port(cluster: RayClusterProcess) -> None:
    options = EngineOptions(
        backend="llama", model_path=str(find_model(None).path), max_model_len=1024, max_sequences=4, num_threads=1
    )
    spec = HostedEngineSpec(kind="llama", lease_s=60.0, process=options)

    async def go() -> None:
        async with RayScene(cluster.address, "llama", spec) as scene:
            for check in (check_every_choice_ends_once, check_token_counts_add_up, check_abort_is_idempotent_and_ends):
                await check(scene)
            await scene.link.aclose()
            assert await scene.door.retire(RayScene.patience_s)

    asyncio.run(go())
