"""GrammarCheck: whether a constraint can be enforced, asked before a request is admitted and its status sent.

Compiles on threads, each source once at a time, and keeps the verdicts. A request waits for its own source only: for a
thread at most as long as for a permit, then for the compilation at most its limit. A compilation beyond the limit is
refused to all who want it, while its thread goes on and is counted; when every thread is in that state, further sources
are refused until one is free again. What somebody still waits for is compiled though others have gone; what nobody
waits for is not begun.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from tidegate.clock import Clock
from tidegate.errors import LimitFact, NoCapacity, ServeError
from tidegate.grammar.compile_cache import CompileCache, CompileKey, Lookup, compile_key
from tidegate.grammar.matcher import GrammarCompiler
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import GrammarSpec
from tidegate.observability.observer import GrammarChecked, Observer
from tidegate.serving.compile_threads import CompileThreads, Job

MAX_WAITING = 256
"""Sources that may wait for a thread."""
COMPILE_LIMIT = "grammar_compile_ms"


@dataclass(frozen=True, slots=True)
class CheckBounds:
    """`limit_ms`: time of one compilation. `wait_ms`: time until it begins."""

    limit_ms: int = 2000
    wait_ms: int = 30_000
    cache_entries: int = 1024
    cache_bytes: int = 256 * 1024 * 1024
    num_threads: int = 2


@dataclass(frozen=True, slots=True)
class GrammarAccounts:
    """Verdicts that are kept, and compilations that wait, run, or run beyond their limit."""

    num_entries: int
    num_bytes: int
    num_evicted: int
    num_pending: int
    num_overdue: int


def join_accounts(parts: Sequence[GrammarAccounts]) -> GrammarAccounts:
    """Returns the sums."""
    return GrammarAccounts(*(sum(numbers) for numbers in zip(*(astuple(part) for part in parts), strict=True)))


@dataclass(frozen=True, slots=True)
class Proven:
    """What is kept here of a grammar that compiled: that it did. Its machines are made in the engine's half."""

    num_bytes: int = 1024


_PROVEN = Proven()


class _Flight:
    """One compilation, from its place in the queue to its end, and those who wait for it."""

    def __init__(self, key: CompileKey, spec: GrammarSpec, verdict: asyncio.Future[GrammarRefusal | None]) -> None:
        self.key = key
        self.spec = spec
        self.verdict = verdict
        self.num_waiting = 0
        self.job: Job | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.started_at: float | None = None
        self.outcome: Proven | GrammarRefusal | None = None
        self.ended_at = 0.0

    def fail(self, error: ServeError) -> None:
        if not self.verdict.done():
            self.verdict.set_exception(error)
            self.verdict.exception()  # those who wait get it; if nobody does, that is no fault

    def settle(self, refusal: GrammarRefusal | None) -> None:
        if not self.verdict.done():
            self.verdict.set_result(refusal)


class GrammarCheck:
    """Belongs to one event loop. `vocabulary` names the tokenizer that the compiler was made for."""

    def __init__(
        self, compiler: GrammarCompiler, vocabulary: str, bounds: CheckBounds, clock: Clock, observer: Observer
    ) -> None:
        self._compiler = compiler
        self._vocabulary = vocabulary
        self._bounds = bounds
        self._clock = clock
        self._observer = observer
        self._cache = CompileCache[Proven](bounds.cache_entries, bounds.cache_bytes)
        self._threads = CompileThreads(bounds.num_threads)
        self._flights: dict[CompileKey, _Flight] = {}
        self._overdue: set[CompileKey] = set()

    def accounts(self) -> GrammarAccounts:
        kept = self._cache.statistics()
        return GrammarAccounts(
            kept.num_entries, kept.num_bytes, kept.num_evicted, len(self._flights), len(self._overdue)
        )

    async def refusal_of(self, spec: GrammarSpec) -> GrammarRefusal | None:
        """Returns None when the spec can be enforced. Raises NoCapacity when nobody can tell now."""
        key = compile_key(self._compiler.identity, self._vocabulary, spec)
        flight = self._flights.get(key)
        if flight is None:
            if self._cache.outcome_of(key) is None:
                self._check_room()
            if self._cache.look_up(key) is Lookup.HIT:
                outcome = self._cache.outcome_of(key)
                self._tell(key, "hit", None)
                return outcome if isinstance(outcome, GrammarRefusal) else None
            flight = self._begin(key, spec)
        else:
            self._cache.look_up(key)
            self._tell(key, "joined", None)
        return await self._wait(flight)

    async def aclose(self) -> None:
        """Ends the threads. Whoever still waits is told that there is no capacity. Idempotent."""
        for flight in list(self._flights.values()):
            flight.fail(NoCapacity("The server is shutting down."))
            _cancel(flight)
        await self._threads.aclose()

    def _check_room(self) -> None:
        """Raises NoCapacity when every thread compiles beyond its limit, or too many sources wait already."""
        limit_ms = self._bounds.limit_ms
        if len(self._overdue) >= self._bounds.num_threads:
            oldest = min(self._flights[key].started_at or 0.0 for key in self._overdue)
            actual_ms = max(limit_ms + 1, int((self._clock.now() - oldest) * 1000))
            raise NoCapacity(
                f"Every thread that compiles grammars is beyond the limit {COMPILE_LIMIT}; try again soon.",
                limit=LimitFact(COMPILE_LIMIT, limit_ms, actual_ms, "server"),
            )
        if self._threads.num_waiting >= MAX_WAITING:
            raise NoCapacity("Too many grammars wait to be compiled; try again soon.")

    def _begin(self, key: CompileKey, spec: GrammarSpec) -> _Flight:
        loop = asyncio.get_running_loop()
        flight = _Flight(key, spec, loop.create_future())
        flight.job = Job(self._work(flight), lambda: self._started(flight), lambda: self._ended(flight))
        self._flights[key] = flight
        flight.timer = loop.call_later(self._bounds.wait_ms / 1000, self._give_up, flight)
        try:
            self._threads.submit(flight.job)
        except RuntimeError:
            self._forget(flight)
            raise NoCapacity("The server is shutting down.") from None
        return flight

    async def _wait(self, flight: _Flight) -> GrammarRefusal | None:
        flight.num_waiting += 1
        try:
            return await asyncio.shield(flight.verdict)
        finally:
            flight.num_waiting -= 1
            if flight.num_waiting == 0 and not flight.verdict.done():
                self._abandon(flight)

    def _work(self, flight: _Flight) -> Callable[[], None]:
        def compile_it() -> None:
            flight.started_at = self._clock.now()
            try:
                compiled = self._compiler.compile(flight.spec)
            except BaseException:
                # Compilers may be anybody's, and a panic inside one in Rust is no Exception.
                compiled = GrammarRefusal(RefusalKind.INVALID_SCHEMA, "the grammar backend failed to compile this")
            flight.outcome = compiled if isinstance(compiled, GrammarRefusal) else _PROVEN
            flight.ended_at = self._clock.now()

        return compile_it

    def _started(self, flight: _Flight) -> None:
        if self._flights.get(flight.key) is not flight or flight.outcome is not None:
            return
        _cancel(flight)
        delay_s = self._bounds.limit_ms / 1000
        flight.timer = asyncio.get_running_loop().call_later(delay_s, self._expire, flight)

    def _expire(self, flight: _Flight) -> None:
        """The limit has passed: whoever waits is told now, and whoever comes while the thread is at it."""
        if flight.outcome is not None:
            return  # it has ended; its end is about to be told
        self._overdue.add(flight.key)
        self._cache.note_timeout()
        flight.settle(self._too_slow(self._clock.now() - (flight.started_at or 0.0)))

    def _ended(self, flight: _Flight) -> None:
        _cancel(flight)
        outcome, duration_s = flight.outcome, flight.ended_at - (flight.started_at or 0.0)
        if outcome is None:
            raise RuntimeError("a compilation ended without an outcome")
        if flight.key in self._overdue:
            # The engine would need as long for it.
            outcome = self._too_slow(duration_s)
        self._cache.finish(flight.key, outcome, duration_s)
        self._forget(flight)
        refusal = outcome if isinstance(outcome, GrammarRefusal) else None
        self._tell(flight.key, _word(flight.key in self._overdue, refusal), duration_s)
        self._overdue.discard(flight.key)
        flight.settle(refusal)

    def _give_up(self, flight: _Flight) -> None:
        """No thread was free in time."""
        if flight.job is not None and self._threads.take_back(flight.job):
            self._drop(flight)
            wait_ms = self._bounds.wait_ms
            limit = LimitFact("queue_deadline_ms", wait_ms, wait_ms, "server")
            flight.fail(NoCapacity("No thread was free to compile the grammar in time.", limit=limit))

    def _abandon(self, flight: _Flight) -> None:
        """Nobody waits any more."""
        if flight.job is not None and self._threads.take_back(flight.job):
            self._drop(flight)
            _cancel(flight)
            flight.verdict.cancel()

    def _drop(self, flight: _Flight) -> None:
        self._cache.drop(flight.key)
        self._forget(flight)

    def _forget(self, flight: _Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]

    def _too_slow(self, duration_s: float) -> GrammarRefusal:
        limit_ms = self._bounds.limit_ms
        actual_ms = max(limit_ms + 1, int(duration_s * 1000))
        return GrammarRefusal(
            RefusalKind.GRAMMAR_TOO_COMPLEX,
            f"takes longer to compile than the limit {COMPILE_LIMIT}, which is {limit_ms}",
            limit=LimitFact(COMPILE_LIMIT, limit_ms, actual_ms),
        )

    def _tell(self, key: CompileKey, outcome: str, duration_s: float | None) -> None:
        with contextlib.suppress(Exception):
            self._observer.grammar_checked(GrammarChecked(kind=key.kind, outcome=outcome, compile_s=duration_s))


def _cancel(flight: _Flight) -> None:
    if flight.timer is not None:
        flight.timer.cancel()
        flight.timer = None


def _word(is_late: bool, refusal: GrammarRefusal | None) -> str:
    if is_late:
        return "timeout"
    return "compiled" if refusal is None else "refused"
