"""The supervisor with a real child: killed, stopped, hung, refused; and nothing left of it afterwards."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.engine_scene import EngineScene
from harness.server_thread import wait_until
from tidegate.engine.messages import EngineReady
from tidegate.engine.options import EngineOptions
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.link import EngineLink
from tidegate.engines.local.supervisor import Supervisor, SupervisorSettings
from tidegate.errors import EngineLost
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script, ScriptChoice
from tidegate.testing.check_engine import CHECKS, RecordingSink

pytestmark = pytest.mark.process

QUICK = SupervisorSettings(restart=RestartSettings(first_wait_s=0.01, max_wait_s=0.05))
SCRIPTED = EngineOptions(backend="scripted", max_sequences=8)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("the condition never held")


def endless(request_id: str) -> InferenceRequest:
    script = Script((ScriptChoice((7,), repeat=100_000, delays_s=(0.001,)),))
    return InferenceRequest(
        request_id, b"\x41\0\0\0" * 40, SamplingParams(), StopRules(max_tokens=100_000), script=script
    )


def short(request_id: str) -> InferenceRequest:
    return InferenceRequest(request_id, b"\x41\0\0\0" * 40, SamplingParams(), StopRules(max_tokens=100))


def open_fds() -> set[tuple[str, str]]:
    """Open descriptors with what they are: two looks name the same thing only where it stayed open in between."""
    found = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        with contextlib.suppress(FileNotFoundError):  # the listing's own, closed by now
            found.add((name, os.readlink(f"/proc/self/fd/{name}")))
    return found


def run(
    body: Callable[[Supervisor], Awaitable[None]],
    options: EngineOptions = SCRIPTED,
    settings: SupervisorSettings = QUICK,
    runtime_dir: Path | None = None,
) -> list[bytes]:
    """Runs `body` with a started supervisor; afterwards no task, file descriptor, process or folder may be left."""
    log: list[bytes] = []

    async def main() -> None:
        supervisor = Supervisor(options, settings, runtime_dir, log.append)
        await supervisor.start()
        socket_path = supervisor.socket_path
        try:
            await body(supervisor)
        finally:
            await supervisor.aclose()
            await supervisor.aclose()
        assert supervisor.process_id is None
        assert socket_path is not None
        assert not socket_path.exists()
        assert socket_path.parent.exists() is (runtime_dir is not None)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    # The first loop of a process opens what later ones share.
    asyncio.run(asyncio.sleep(0))
    before = open_fds()
    asyncio.run(main())
    with contextlib.suppress(AssertionError):
        wait_until(lambda: open_fds() <= before, "every descriptor is closed")
    assert open_fds() - before == set()
    return log


def test_a_kill_in_mid_stream_fails_the_sink_and_the_next_epoch_starts_at_rest() -> None:
    async def body(supervisor: Supervisor) -> None:
        await supervisor.wait_ready()
        engine = supervisor.engine
        sinks = [RecordingSink() for _ in range(3)]
        for i, sink in enumerate(sinks):
            engine.submit(endless(f"r{i}"), sink)
        await until(lambda: all(sink.has_begun for sink in sinks))
        assert engine.statistics().gauges.blocks_used > 0
        killed = supervisor.process_id
        assert killed is not None
        assert engine.statistics().process_id == killed
        os.kill(killed, signal.SIGKILL)
        await until(lambda: all(sink.has_ended for sink in sinks))
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)
        await supervisor.wait_ready()
        again = RecordingSink()
        engine.submit(short("r0"), again)
        await until(lambda: again.has_ended)
        await until(lambda: engine.statistics().gauges.blocks_used == 0)
        for sink in [*sinks, again]:
            sink.check()
        assert again.finishes == {0: EngineFinish.EOS}
        status = engine.statistics()
        assert (status.epoch, status.num_restarts, status.num_stale_outputs) == (2, 1, 0)
        assert status.process_id not in (None, killed)

    run(body)


def test_a_restart_that_is_asked_for_needs_no_patience() -> None:
    settings = SupervisorSettings(restart=RestartSettings(first_wait_s=3600.0, max_wait_s=3600.0))

    async def body(supervisor: Supervisor) -> None:
        for epoch in (1, 2, 3):
            await supervisor.wait_ready()
            assert supervisor.engine.statistics().epoch == epoch
            await supervisor.restart()
        # While it waits after a crash, asking for a restart ends the wait.
        await supervisor.wait_ready()
        assert supervisor.process_id is not None
        os.kill(supervisor.process_id, signal.SIGKILL)
        await until(lambda: supervisor.process_id is None)
        await supervisor.restart()
        await supervisor.wait_ready()
        assert supervisor.engine.statistics().epoch == 5

    run(body, settings=settings)


def test_a_hung_engine_is_killed_and_replaced() -> None:
    settings = SupervisorSettings(
        restart=RestartSettings(first_wait_s=0.01), ping_interval_s=0.1, stall_timeout_s=3.0, stop_grace_s=1.0
    )

    async def body(supervisor: Supervisor) -> None:
        await supervisor.wait_ready()
        sink = RecordingSink()
        supervisor.engine.submit(endless("a"), sink)
        await until(lambda: sink.has_begun)
        assert supervisor.process_id is not None
        os.kill(supervisor.process_id, signal.SIGSTOP)
        await until(lambda: sink.has_ended)
        assert isinstance(sink.error, EngineLost)
        await supervisor.wait_ready()
        assert supervisor.engine.statistics().epoch >= 2

    run(body, settings=settings)


def test_an_engine_that_does_not_answer_sigterm_is_killed_at_the_end() -> None:
    async def body(supervisor: Supervisor) -> None:
        await supervisor.wait_ready()
        assert supervisor.process_id is not None
        os.kill(supervisor.process_id, signal.SIGSTOP)

    run(body, settings=SupervisorSettings(stop_grace_s=0.05))


def test_an_end_while_the_engine_starts_leaves_nothing() -> None:
    async def body(supervisor: Supervisor) -> None:
        await asyncio.sleep(0)

    run(body)


def test_what_never_starts_is_given_up_with_its_last_words() -> None:
    told: list[EngineStartFailed] = []

    async def body(supervisor: Supervisor) -> None:
        for _ in range(2):
            with pytest.raises(EngineStartFailed, match="3 times in a row") as caught:
                await supervisor.wait_ready()
            told.append(caught.value)
            await supervisor.restart()  # a person may try again

    log = run(body, EngineOptions(backend="llama", model_path="/nowhere/model.gguf"))
    assert told[0] is not told[1]
    assert told[0].exit_code == 3
    assert any("/nowhere/model.gguf" in line for line in told[0].last_lines)
    assert all(line.endswith(b"\n") for line in log)


def test_a_second_server_process_shares_the_engine(tmp_path: Path) -> None:
    async def body(supervisor: Supervisor) -> None:
        await supervisor.wait_ready()
        assert supervisor.socket_path is not None
        other = LocalEngine(lambda context: pytest.fail(str(context)))
        greetings: list[EngineReady] = []
        other.on_ready.append(greetings.append)
        link = EngineLink(other, supervisor.socket_path)
        link.start()
        await until(lambda: other.is_ready)
        ours, theirs = RecordingSink(), RecordingSink()
        supervisor.engine.submit(endless("ours"), ours)
        other.submit(endless("theirs"), theirs)
        await until(lambda: ours.has_begun and theirs.has_begun)
        # One server goes: its request ends in the engine, the other's goes on.
        await link.aclose()
        assert isinstance(theirs.error, EngineLost)
        await until(lambda: supervisor.engine.statistics().gauges.num_running == 1)
        num_tokens = len(ours.token_ids[0])
        await until(lambda: len(ours.token_ids[0]) > num_tokens)
        # It comes back, and both follow the engine into its next epoch.
        link = EngineLink(other, supervisor.socket_path)
        link.start()
        await until(lambda: other.is_ready)
        await supervisor.restart()
        await supervisor.wait_ready()
        await until(lambda: len(greetings) == 3 and other.is_ready)
        assert [greeting.epoch for greeting in greetings] == [1, 1, 2]
        await link.aclose()

    run(body, runtime_dir=tmp_path / "run")


def test_a_path_too_long_for_a_socket_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter folder"):
        EngineLink(LocalEngine(print), tmp_path / ("x" * 100))


class ChildUnderTest(EngineScene):
    """A real engine process for the shipped checks."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    @property
    def engine(self) -> LocalEngine:
        return self._supervisor.engine

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def lose(self) -> None:
        assert self._supervisor.process_id is not None
        os.kill(self._supervisor.process_id, signal.SIGKILL)


def test_a_real_engine_keeps_the_port() -> None:
    async def body(supervisor: Supervisor) -> None:
        for check in CHECKS:
            await supervisor.wait_ready()
            await check(ChildUnderTest(supervisor))

    run(body, EngineOptions(backend="simulated", simulated_model="hash", max_sequences=8, has_costs=True))
