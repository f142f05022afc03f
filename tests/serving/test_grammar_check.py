"""GrammarCheck: one compilation for each source, verdicts kept, nobody waits for another's, nothing is left behind."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from harness.slow_compiler import BROKEN, QUICK, REFUSED, SlowCompiler
from tidegate.errors import NoCapacity
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import RegexSpec
from tidegate.observability.observer import GrammarChecked, NullObserver
from tidegate.serving import grammar_check
from tidegate.serving.grammar_check import CheckBounds, GrammarCheck
from tidegate.system import SystemClock

PATIENT = CheckBounds(limit_ms=60_000, wait_ms=60_000)
HASTY = CheckBounds(limit_ms=1, wait_ms=60_000)


class Facts(NullObserver):
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()

    def grammar_checked(self, facts: GrammarChecked) -> None:
        self.outcomes[facts.outcome] += 1


class Site:
    def __init__(self, bounds: CheckBounds) -> None:
        self.compiler = SlowCompiler()
        self.facts = Facts()
        self.check = GrammarCheck(self.compiler, "vocabulary", bounds, SystemClock(), self.facts)

    def ask(self, pattern: str) -> Awaitable[GrammarRefusal | None]:
        return self.check.refusal_of(RegexSpec(pattern))

    def begin(self, pattern: str) -> "asyncio.Task[GrammarRefusal | None]":
        return asyncio.get_running_loop().create_task(self.check.refusal_of(RegexSpec(pattern)))


@asynccontextmanager
async def open_site(bounds: CheckBounds = PATIENT) -> AsyncIterator[Site]:
    site = Site(bounds)
    try:
        yield site
    finally:
        site.compiler.release(*site.compiler.begun)
        await site.check.aclose()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("grammar-")]
    assert site.check.accounts().num_pending in (0, site.check.accounts().num_overdue)


async def reach(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())


def test_equal_sources_in_flight_compile_once_and_all_hear_the_verdict() -> None:
    async def scene() -> None:
        async with open_site() as site:
            tasks = [site.begin("a") for _ in range(5)]
            await reach(lambda: site.compiler.begun["a"] == 1)
            site.compiler.release("a")
            assert await asyncio.gather(*tasks) == [None] * 5
            assert await site.ask("a") is None
            assert site.compiler.begun == {"a": 1}
            assert site.facts.outcomes == {"joined": 4, "compiled": 1, "hit": 1}

    play(scene)


@pytest.mark.parametrize(
    ("pattern", "kind"), [(REFUSED, RefusalKind.UNSUPPORTED_SCHEMA), (BROKEN, RefusalKind.INVALID_SCHEMA)]
)
def test_a_refusal_is_kept_like_a_grammar(pattern: str, kind: RefusalKind) -> None:
    async def scene() -> None:
        async with open_site() as site:
            for _ in range(3):
                refusal = await site.ask(pattern)
                assert refusal is not None
                assert refusal.kind is kind
            assert site.compiler.begun == {pattern: 1}

    play(scene)


def test_a_source_waits_for_its_own_compilation_only() -> None:
    async def scene() -> None:
        async with open_site() as site:
            slow = site.begin("slow")
            await reach(lambda: site.compiler.begun["slow"] == 1)
            for number in range(20):
                assert await site.ask(f"{QUICK}{number}") is None
            assert not slow.done()

    play(scene)


def test_what_nobody_waits_for_any_more_is_not_begun_and_what_somebody_waits_for_is() -> None:
    async def scene() -> None:
        async with open_site() as site:
            busy = [site.begin("x"), site.begin("y")]
            await reach(lambda: len(site.compiler.begun) == 2)
            gone, half_gone, stays = site.begin("gone"), site.begin("half"), site.begin("half")
            await asyncio.sleep(0)
            gone.cancel()
            half_gone.cancel()
            await reach(lambda: gone.done() and half_gone.done())
            assert site.check.accounts().num_pending == 3
            site.compiler.release("x", "y", "half")
            assert await asyncio.gather(*busy, stays) == [None] * 3
            assert site.compiler.begun == {"x": 1, "y": 1, "half": 1}
            site.compiler.release("gone")
            assert await site.ask("gone") is None

    play(scene)


def test_a_compilation_beyond_its_limit_is_refused_while_it_runs_and_afterwards() -> None:  # SEC-3
    async def scene() -> None:
        async with open_site(HASTY) as site:
            first = await site.ask("endless")
            second = await site.ask("endless")
            assert site.check.accounts().num_overdue == 1
            site.compiler.release("endless")
            await reach(lambda: site.check.accounts().num_overdue == 0)
            third = await site.ask("endless")
            for refusal in (first, second, third):
                assert refusal is not None
                assert refusal.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
                assert refusal.limit is not None
                assert (refusal.limit.name, refusal.limit.value) == ("grammar_compile_ms", 1)
                assert refusal.limit.actual >= 1
            assert site.compiler.begun == {"endless": 1}
            assert site.facts.outcomes == {"joined": 1, "timeout": 1, "hit": 1}

    play(scene)


def test_compilations_that_ignore_their_limit_cannot_exhaust_the_threads_in_silence() -> None:  # SEC-3
    async def scene() -> None:
        async with open_site(HASTY) as site:
            await asyncio.gather(site.ask("one"), site.ask("two"))
            assert site.check.accounts().num_overdue == 2
            with pytest.raises(NoCapacity) as raised:
                await site.ask("innocent")
            limit = raised.value.limit
            assert limit is not None
            assert (limit.name, limit.scope) == ("grammar_compile_ms", "server")
            assert await site.ask("one") is not None, "what is known is answered all the same"
            site.compiler.release("one")
            await reach(lambda: site.check.accounts().num_overdue == 1)
            assert await site.ask(REFUSED) is not None
            assert site.compiler.begun == {"one": 1, "two": 1, REFUSED: 1}

    play(scene)


def test_the_wait_for_a_thread_has_a_limit_of_its_own() -> None:
    async def scene() -> None:
        async with open_site(CheckBounds(limit_ms=60_000, wait_ms=1, num_threads=1)) as site:
            running = site.begin("long")
            while not site.compiler.begun["long"]:  # the thread itself may start later than the limit
                await asyncio.wait({running}, timeout=0.001)
                running = site.begin("long") if running.done() and running.exception() else running
            with pytest.raises(NoCapacity) as raised:
                await site.ask("behind")
            assert raised.value.limit is not None
            assert raised.value.limit.name == "queue_deadline_ms"
            assert not running.done()
            assert site.check.accounts().num_pending == 1

    play(scene)


def test_no_more_sources_wait_than_the_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_check, "MAX_WAITING", 3)

    async def scene() -> None:
        async with open_site(CheckBounds(60_000, 60_000, num_threads=1)) as site:
            first = site.begin("first")
            await reach(lambda: site.compiler.begun["first"] == 1)
            waiting = [site.begin(f"{QUICK}{i}") for i in range(3)]
            await reach(lambda: site.check.accounts().num_pending == 4)
            with pytest.raises(NoCapacity):
                await site.ask("one too many")
            site.compiler.release("first")
            assert await asyncio.gather(first, *waiting) == [None] * 4

    play(scene)


def test_many_sources_leave_no_more_verdicts_than_the_cache_holds() -> None:  # SEC-5
    async def scene() -> None:
        async with open_site(CheckBounds(60_000, 60_000, cache_entries=16, cache_bytes=8_192)) as site:
            for number in range(300):
                await site.ask(f"{(QUICK, REFUSED)[number % 2]}{number}")
                accounts = site.check.accounts()
                assert accounts.num_entries <= 16
                assert accounts.num_bytes <= 8_192
            assert accounts.num_evicted == 300 - accounts.num_entries
            assert accounts.num_pending == 0

    play(scene)


def test_the_end_tells_those_who_wait_and_leaves_no_thread() -> None:
    async def scene() -> None:
        site = Site(CheckBounds(60_000, 60_000, num_threads=1))
        running, waiting = site.begin("running"), site.begin("waiting")
        await reach(lambda: site.compiler.begun["running"] == 1)
        closing = asyncio.get_running_loop().create_task(site.check.aclose())
        for task in (running, waiting):
            with pytest.raises(NoCapacity):
                await task
        site.compiler.release("running")
        await closing
        await site.check.aclose()
        with pytest.raises(NoCapacity):
            await site.ask("late")
        assert site.compiler.begun == {"running": 1}
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("grammar-")]

    play(scene)
