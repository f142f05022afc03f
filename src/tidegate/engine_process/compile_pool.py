"""CompilePool: a few threads that compile grammars while the engine steps.

The `GrammarDesk` of an engine process. Everything but compiling happens on the thread that steps: an outcome waits,
and a byte on `arrivals` wakes the loop, which then calls `collect`. What is there already, or on its way, and what is
forgotten, the cache decides (`grammar/compile_cache.py`).
"""

import queue
import socket
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidegate.clock import Clock
from tidegate.core.grammar_desk import GrammarCounts, GrammarOrder
from tidegate.engine_process.metered_compiler import MeteredCompiler
from tidegate.grammar.compile_cache import CompileCache, CompileKey, CompileOutcome, Lookup, compile_key
from tidegate.grammar.matcher import CompiledGrammar
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import GrammarSpec


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Grammars that compile at once; compiled ones that are kept, and about how much memory they may hold."""

    num_threads: int = 2
    max_entries: int = 1024
    max_bytes: int = 256 * 1024 * 1024


@dataclass(slots=True)
class _Job:
    """A grammar that is being compiled, or will be, and everybody who waits for it."""

    key: CompileKey
    spec: GrammarSpec
    orders: list[GrammarOrder]


@dataclass(frozen=True, slots=True)
class _Done:
    """What a thread has brought. No outcome: nobody wanted the grammar any more when its turn came."""

    job: _Job
    outcome: CompileOutcome | None
    compile_s: float


class CompilePool:
    """Owns its threads. `vocabulary` names the tokens that the compiler was made for."""

    def __init__(self, compiler: MeteredCompiler, vocabulary: str, clock: Clock, limits: PoolLimits) -> None:
        self._compiler = compiler
        self._vocabulary = vocabulary
        self._clock = clock
        self._cache = CompileCache[CompiledGrammar](limits.max_entries, limits.max_bytes)
        self._threads = ThreadPoolExecutor(limits.num_threads, thread_name_prefix="grammar")
        self._jobs: dict[CompileKey, _Job] = {}
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        self.arrivals, self._wake_end = socket.socketpair()
        self.arrivals.setblocking(False)
        self._wake_end.setblocking(False)

    @property
    def identity(self) -> str:
        return self._compiler.identity

    def order(self, spec: GrammarSpec) -> GrammarOrder:
        """Returns an order that is filled already where the grammar is kept, else by a later `collect`."""
        key = compile_key(self.identity, self._vocabulary, spec)
        order = GrammarOrder()
        match self._cache.look_up(key):
            case Lookup.HIT:
                order.outcome = self._cache.outcome_of(key)
            case Lookup.PENDING:
                self._jobs[key].orders.append(order)
            case Lookup.MISS:
                self._start(_Job(key, spec, [order]))
        return order

    def collect(self) -> None:
        """Hands over what has been compiled since the last call."""
        try:
            while self.arrivals.recv(4096):
                pass
        except BlockingIOError:
            pass
        for done in self._take_done():
            job = done.job
            if done.outcome is not None:
                del self._jobs[job.key]
                self._cache.finish(job.key, done.outcome, done.compile_s)
                for order in job.orders:
                    order.outcome = done.outcome
            elif any(order.is_wanted for order in job.orders):
                self._start(job)
            else:
                del self._jobs[job.key]
                self._cache.drop(job.key)

    def counts(self) -> GrammarCounts:
        counts = self._cache.statistics()
        return GrammarCounts(
            num_compiles=counts.num_compiled,
            num_hits=counts.num_hits + counts.num_joined,
            num_failures=counts.num_refused,
            compile_s=counts.compile_s,
            num_masks=self._compiler.num_masks,
            mask_s=self._compiler.mask_s,
        )

    def close(self) -> None:
        """Drops what has not begun to compile, and waits for what has."""
        for job in self._jobs.values():
            for order in job.orders:
                order.is_wanted = False
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.arrivals.close()
        self._wake_end.close()

    def _start(self, job: _Job) -> None:
        self._jobs[job.key] = job
        self._threads.submit(self._compile, job)

    def _compile(self, job: _Job) -> None:
        """Runs in a thread of the pool."""
        started_at = self._clock.now()
        outcome: CompileOutcome | None = None
        if any(order.is_wanted for order in job.orders):
            outcome = self._outcome_of(job.spec)
        self._done.put(_Done(job, outcome, self._clock.now() - started_at))
        try:
            self._wake_end.send(b"x")
        except OSError:
            return  # a full pipe wakes as well; a closed one wakes nobody, as it should

    def _outcome_of(self, spec: GrammarSpec) -> CompileOutcome:
        try:
            return self._compiler.compile(spec)
        except BaseException as error:
            # Compilers may be anybody's, and a panic inside one in Rust is no Exception.
            return GrammarRefusal(RefusalKind.INVALID_SCHEMA, f"the compiler failed: {type(error).__name__}")

    def _take_done(self) -> deque[_Done]:
        done: deque[_Done] = deque()
        while True:
            try:
                done.append(self._done.get_nowait())
            except queue.Empty:
                return done
