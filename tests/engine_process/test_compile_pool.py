"""Grammars compile beside the steps: on a real loop and socket, with a compiler that waits where it is told to."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.exit_code import EngineExit
from tidegate.engine.framing import FrameDecoder, decode_report, encode_frame
from tidegate.engine.messages import AbortRequest, AddRequest, EngineReady, Report, StepOutputs
from tidegate.engine_process.__main__ import open_listener
from tidegate.engine_process.compile_pool import CompilePool, PoolLimits
from tidegate.engine_process.log import JsonLog
from tidegate.engine_process.loop import LoopSockets, StepLoop
from tidegate.engine_process.metered_compiler import MeteredCompiler
from tidegate.engine_process.switchboard import Switchboard
from tidegate.grammar.compile_cache import CompileOutcome
from tidegate.grammar.llguidance.llguidance_compiler import LlguidanceCompiler
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarRule, GrammarSpec
from tidegate.system import SystemClock
from tidegate.testing.requests import make_request

PATIENCE_S = 30.0
SLOW, OTHER, QUICK = ChoiceSpec(("slow",)), ChoiceSpec(("other",)), ChoiceSpec(("quick",))
BROKEN = ChoiceSpec(("broken",))


class GatedCompiler(LlguidanceCompiler):
    """Compiles `SLOW` only when `gate` is open, and breaks at `BROKEN`."""

    gate: threading.Event
    seen: list[GrammarSpec]

    def compile(self, spec: GrammarSpec) -> CompileOutcome:  # type: ignore[override]
        self.seen.append(spec)
        if spec == SLOW and not self.gate.wait(PATIENCE_S):
            raise AssertionError("the gate was never opened")
        if spec == BROKEN:
            raise ZeroDivisionError
        return super().compile(spec)


def gated() -> GatedCompiler:
    compiler = GatedCompiler(SimulatedBackend().token_table())
    compiler.gate, compiler.seen = threading.Event(), []
    return compiler


@contextmanager
def pool_of(compiler: GatedCompiler, limits: PoolLimits) -> Iterator[CompilePool]:
    clock = SystemClock()
    pool = CompilePool(MeteredCompiler(compiler, clock), "v", clock, limits)
    try:
        yield pool
    finally:
        compiler.gate.set()
        pool.close()


def collect_until(pool: CompilePool, *orders: GrammarOrder) -> None:
    while any(order.outcome is None for order in orders):
        ready, _, _ = select.select([pool.arrivals], [], [], PATIENCE_S)
        assert ready, "nothing arrived"
        pool.collect()


def test_a_grammar_is_compiled_once_for_all_who_want_it_and_kept() -> None:
    compiler = gated()
    with pool_of(compiler, PoolLimits(num_threads=2)) as pool:
        early = [pool.order(SLOW) for _ in range(3)]
        quick = pool.order(QUICK)
        collect_until(pool, quick)
        assert [order.outcome for order in early] == [None] * 3
        compiler.gate.set()
        collect_until(pool, *early)
        late = pool.order(SLOW)
        assert late.outcome is early[0].outcome is early[2].outcome
        assert compiler.seen.count(SLOW) == 1
        counts = pool.counts()
        assert (counts.num_compiles, counts.num_hits, counts.num_failures) == (2, 3, 0)


def test_what_nobody_wants_any_more_is_not_compiled_unless_somebody_comes() -> None:
    compiler = gated()
    with pool_of(compiler, PoolLimits(num_threads=1)) as pool:
        slow, given_up, changed = pool.order(SLOW), pool.order(OTHER), pool.order(QUICK)
        given_up.is_wanted = changed.is_wanted = False
        again = pool.order(QUICK)
        compiler.gate.set()
        collect_until(pool, slow, again)
        assert again.outcome is changed.outcome
        assert given_up.outcome is None
        assert OTHER not in compiler.seen
        later = pool.order(OTHER)
        collect_until(pool, later)
        assert not isinstance(later.outcome, GrammarRefusal)


def test_a_compiler_that_raises_is_a_refusal() -> None:
    with pool_of(gated(), PoolLimits()) as pool:
        order = pool.order(BROKEN)
        collect_until(pool, order)
        assert isinstance(order.outcome, GrammarRefusal)
        assert "ZeroDivisionError" in order.outcome.message
        assert pool.counts().num_failures == 1


def test_the_cache_is_bounded() -> None:
    with pool_of(gated(), PoolLimits(max_entries=1)) as pool:
        first = pool.order(QUICK)
        collect_until(pool, first)
        collect_until(pool, pool.order(OTHER))
        again = pool.order(QUICK)
        assert again.outcome is None
        collect_until(pool, again)


def test_closing_drops_what_has_not_begun() -> None:
    compiler = gated()
    with pool_of(compiler, PoolLimits(num_threads=1)) as pool:
        pool.order(QUICK)
        pool.order(SLOW)
        for number in range(50):
            pool.order(ChoiceSpec((str(number),)))
    assert len(compiler.seen) < 52


class NoParent:
    is_gone = False
    stdin_fd = None


class Engine:
    """A core with a real pool, its loop in a thread, and one connection."""

    def __init__(self, folder: Path, compiler: GatedCompiler) -> None:
        folder.chmod(0o700)
        clock = SystemClock()
        backend = SimulatedBackend(SimulatedModel.SUCCESSOR)
        caps = backend.caps
        metered = MeteredCompiler(compiler, clock)
        self.rows = GrammarRows(metered, GrammarShape(caps.max_sequences, 0, caps.vocab_size, caps.eos_token_ids))
        self.pool = CompilePool(metered, "v", clock, PoolLimits(num_threads=1))
        chooser = SamplerChain(caps.vocab_size, caps.eos_token_ids, self.rows)
        self.core = EngineCore(backend, chooser, grammars=self.pool)
        self.listener = open_listener(folder / "s")
        self.stop, self._stop_end = socket.socketpair()
        sockets = LoopSockets(self.listener, self._stop_end, self.pool)
        board = Switchboard(self.core, 1, self.core.model)
        self._loop = StepLoop(self.core, board, sockets, clock, JsonLog(clock, 1))
        self.codes: list[EngineExit] = []
        self._thread = threading.Thread(target=lambda: self.codes.append(self._loop.run(NoParent())))
        self._thread.start()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(str(folder / "s"))
        self._decoder = FrameDecoder()
        self.texts: dict[str, bytes] = {}
        self.ends: dict[str, EngineFinish] = {}
        self.last: StepOutputs | None = None
        self.ready: EngineReady | None = None

    def send(self, *commands: AddRequest | AbortRequest) -> None:
        self.sock.sendall(b"".join(map(encode_frame, commands)))

    def read_until(self, *request_ids: str) -> None:
        while not set(request_ids) <= set(self.ends):
            self._read()

    def read_until_rest(self) -> None:
        while self.last is None or self.last.gauges.num_constrained or self.last.gauges.blocks_used:
            self._read()

    def _read(self) -> None:
        for frame in self._decoder.feed(self.sock.recv(65536)):
            self._take(decode_report(frame))

    def _take(self, report: Report) -> None:
        if isinstance(report, EngineReady):
            self.ready = report
        if isinstance(report, StepOutputs):
            self.last = report
            for delta in report.outputs:
                self.texts[delta.request_id] = self.texts.get(delta.request_id, b"") + bytes(delta.token_ids)
                if delta.finish is not None:
                    self.ends[delta.request_id] = delta.finish

    def close(self) -> None:
        self.stop.send(b"x")
        self._thread.join(PATIENCE_S)
        self.pool.close()
        for sock in (self.sock, self.stop, self._stop_end, self.listener):
            sock.close()
        assert self.codes == [EngineExit.CLEAN]


@pytest.fixture
def compiler() -> Iterator[GatedCompiler]:
    made = gated()
    yield made
    made.gate.set()


@pytest.fixture
def engine(tmp_path: Path, compiler: GatedCompiler) -> Iterator[Engine]:
    made = Engine(tmp_path, compiler)
    yield made
    compiler.gate.set()
    made.close()


def add(request_id: str, spec: GrammarSpec | None = None, max_tokens: int = 40) -> AddRequest:
    rule = GrammarRule(spec) if spec is not None else None
    return AddRequest(make_request(request_id, "abc", max_tokens=max_tokens, grammar=rule))


def test_a_slow_compilation_delays_no_neighbour_and_wakes_the_loop_when_it_is_done(
    engine: Engine, compiler: GatedCompiler
) -> None:
    engine.send(add("slow", SLOW), add("free", max_tokens=200))
    engine.read_until("free")
    assert len(engine.texts["free"]) == 200
    assert "slow" not in engine.texts
    compiler.gate.set()
    engine.read_until("slow")
    assert engine.texts["slow"] == b"slow"
    assert engine.ends["slow"] is EngineFinish.GRAMMAR_COMPLETE
    engine.read_until_rest()
    assert engine.last is not None
    gauges = engine.last.gauges
    assert (gauges.num_grammar_compiles, gauges.num_grammar_masks) == (1, 4)
    assert min(gauges.grammar_compile_s, gauges.grammar_mask_s) > 0.0
    assert engine.ready is not None
    assert engine.ready.model.grammar_backend == compiler.identity


def test_what_is_aborted_while_its_grammar_compiles_leaves_nothing(engine: Engine, compiler: GatedCompiler) -> None:
    engine.send(add("slow", SLOW), add("late", OTHER), AbortRequest("slow"), AbortRequest("late"))
    engine.read_until("slow", "late")
    compiler.gate.set()
    engine.send(add("next", QUICK))
    engine.read_until("next")
    engine.read_until_rest()
    assert engine.texts["next"] == b"quick"
    assert OTHER not in compiler.seen
    assert len(engine.rows) == 0
