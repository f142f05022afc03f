"""The loop's own faults, with cores that fail on purpose, on real sockets and in one process."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate.core.backend import BackendError
from tidegate.engine.exit_code import EngineExit
from tidegate.engine.framing import FrameDecoder, decode_report, encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    EngineFault,
    EngineReady,
    Farewell,
    HoldRequest,
    Ping,
    Pong,
    Report,
    StepOutputs,
)
from tidegate.engine_process import loop as loop_module
from tidegate.engine_process.__main__ import open_listener
from tidegate.engine_process.connection import Connection, ConnectionGone
from tidegate.engine_process.log import JsonLog
from tidegate.engine_process.loop import LoopSockets, StepLoop
from tidegate.engine_process.switchboard import Switchboard
from tidegate.errors import InternalError
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.system import SystemClock

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand")
REQUEST = AddRequest(InferenceRequest("a", b"\x41\0\0\0", SamplingParams(), StopRules(max_tokens=9)))


class ShortLivedCore:
    """Wants one step after a request, and then does what it was made to do."""

    def __init__(self, act: Callable[[], list[TokenDelta]], check: Callable[[], None] = lambda: None) -> None:
        self._act = act
        self._check = check
        self._has_work = False
        self._has_stepped = False

    def apply(self, command: AddRequest | AbortRequest | HoldRequest, now: float) -> None:
        self._has_work = True

    def step(self, now: float) -> list[TokenDelta]:
        self._has_work = False
        self._has_stepped = True
        return self._act()

    def next_wake_at(self, now: float) -> float | None:
        return now if self._has_work else None

    def statistics(self) -> EngineGauges:
        return EngineGauges()

    def check_integrity(self) -> None:
        if self._has_stepped:
            self._check()


class HoldingCore(ShortLivedCore):
    """Only counts commands: its gauges move without a step."""

    num_held = 0

    def apply(self, command: AddRequest | AbortRequest | HoldRequest, now: float) -> None:
        self.num_held += 1

    def statistics(self) -> EngineGauges:
        return EngineGauges(num_held=self.num_held)


class NoParent:
    is_gone = False
    stdin_fd = None


class Running:
    """A loop in a thread, and one connection to it."""

    def __init__(self, folder: Path, core: ShortLivedCore) -> None:
        folder.chmod(0o700)
        self.path = folder / "s"
        self.listener = open_listener(self.path)
        self.stop, stop_end = socket.socketpair()
        sockets = LoopSockets(self.listener, stop_end)
        clock = SystemClock()
        loop = StepLoop(core, Switchboard(core, 1, MODEL), sockets, clock, JsonLog(clock, 1))
        self.codes: list[EngineExit] = []
        self.thread = threading.Thread(target=lambda: self.codes.append(loop.run(NoParent())))
        self.thread.start()
        self.sock = self.dial()
        self._stop_end = stop_end

    def dial(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(20.0)
        sock.connect(str(self.path))
        return sock

    def end(self) -> EngineExit:
        self.stop.send(b"x")
        self.thread.join(20.0)
        for sock in (self.sock, self.stop, self._stop_end, self.listener):
            sock.close()
        return self.codes[0]


@contextmanager
def running(folder: Path, core: ShortLivedCore) -> Iterator[Running]:
    it = Running(folder, core)
    try:
        yield it
    finally:
        it.end()


def is_pong(report: Report) -> bool:
    return isinstance(report, Pong)


def has_outputs(report: Report) -> bool:
    return isinstance(report, StepOutputs) and bool(report.outputs)


def reports(sock: socket.socket, until: Callable[[Report], bool] | None = None) -> list[Report]:
    """Returns what comes up to the end of the connection, or up to a message that `until` wants."""
    decoder, heard = FrameDecoder(), []
    while data := sock.recv(65536):
        heard += [decode_report(frame) for frame in decoder.feed(data)]
        if until is not None and any(until(report) for report in heard):
            break
    return heard


def fail_backend() -> list[TokenDelta]:
    raise BackendError("out of /memory")


def fail_anyhow() -> list[TokenDelta]:
    raise ZeroDivisionError


def fail_integrity() -> None:
    raise InternalError("a block is in two lists")


FAULTS = [
    (ShortLivedCore(fail_backend), EngineExit.BACKEND_FAILED, "A forward pass failed."),
    (ShortLivedCore(fail_anyhow), EngineExit.INTERNAL, "An internal error in the engine."),
    (ShortLivedCore(list, fail_integrity), EngineExit.INTERNAL, "An internal error in the engine."),
]


@pytest.mark.parametrize(("core", "code", "message"), FAULTS, ids=["backend", "internal", "integrity"])
def test_a_fault_is_told_to_everybody_and_ends_the_loop(
    tmp_path: Path, core: ShortLivedCore, code: EngineExit, message: str
) -> None:
    with running(tmp_path, core) as it:
        it.sock.send(encode_frame(REQUEST))
        heard = reports(it.sock)
        assert heard[-1] == EngineFault(message)
        it.thread.join(20.0)
        assert it.codes == [code]


def test_the_greeting_comes_first_and_a_stop_ends_cleanly(tmp_path: Path) -> None:
    with running(tmp_path, ShortLivedCore(list)) as it:
        it.sock.send(encode_frame(Ping(3)))
        heard = reports(it.sock, until=is_pong)
        assert heard[0] == EngineReady(1, MODEL)
        it.stop.send(b"x")
        last = reports(it.sock)
        assert not any(has_outputs(report) or isinstance(report, EngineFault) for report in last)
        assert last[-1] == Farewell(), "nobody is to blame"
        it.thread.join(20.0)
        assert it.codes == [EngineExit.CLEAN]


def test_gauges_that_move_without_a_step_are_told_to_everybody(tmp_path: Path) -> None:
    with running(tmp_path, HoldingCore(list)) as it:
        other = it.dial()
        reports(other, until=lambda report: isinstance(report, EngineReady))
        it.sock.send(encode_frame(REQUEST))
        moved = StepOutputs(1, [], EngineGauges(num_held=1))
        for sock in (it.sock, other):
            assert moved in reports(sock, until=lambda report: report == moved)
        other.close()


def test_a_server_that_joins_an_engine_at_rest_hears_its_gauges(tmp_path: Path) -> None:
    with running(tmp_path, ShortLivedCore(list)) as it:
        reports(it.sock, until=lambda report: isinstance(report, StepOutputs))
        other = it.dial()
        reports(other, until=lambda report: isinstance(report, StepOutputs))
        other.close()


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff", b"\x01\0\0\0\xc1", encode_frame(Pong(1, EngineGauges())), encode_frame(REQUEST) * 2]
)
def test_a_broken_client_is_dropped_and_the_others_are_not(tmp_path: Path, data: bytes) -> None:
    with running(tmp_path, ShortLivedCore(list)) as it:
        other = it.dial()
        it.sock.send(data)
        reports(it.sock)
        other.send(encode_frame(Ping(3)))
        assert any(isinstance(report, Pong) for report in reports(other, until=is_pong))
        other.close()


def test_server_processes_beyond_the_bound_are_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # OVL-8
    monkeypatch.setattr(loop_module, "MAX_CONNECTIONS", 2)
    with running(tmp_path, HoldingCore(list)) as run:
        second, third = run.dial(), run.dial()
        with second, third:
            assert reports(third) == []
            for sock in (run.sock, second):
                sock.sendall(encode_frame(Ping(1)))
                assert any(is_pong(report) for report in reports(sock, is_pong))


def test_a_command_in_many_pieces_is_one_command(tmp_path: Path) -> None:
    delta = TokenDelta("a", 0, [7])
    with running(tmp_path, ShortLivedCore(lambda: [delta])) as it:
        for byte in encode_frame(REQUEST):
            it.sock.send(bytes([byte]))
        heard = reports(it.sock, until=has_outputs)
        assert [report.outputs for report in heard if isinstance(report, StepOutputs) and report.outputs] == [[delta]]


def test_frames_larger_than_the_socket_arrive_whole_while_the_loop_goes_on(tmp_path: Path) -> None:
    delta = TokenDelta("a", 0, list(range(2_000_000)))
    with running(tmp_path, ShortLivedCore(lambda: [delta])) as it:
        it.sock.send(encode_frame(REQUEST))
        other = it.dial()
        other.send(encode_frame(Ping(3)))
        reports(other, until=is_pong)
        other.close()
        heard = reports(it.sock, until=has_outputs)
        assert [report.outputs for report in heard if isinstance(report, StepOutputs) and report.outputs] == [[delta]]


def test_a_reader_that_is_too_far_behind_is_gone() -> None:  # OVL-8
    ours, theirs = socket.socketpair()
    connection = Connection(ours, 1, max_unsent_bytes=1_000_000)
    while connection.num_unsent_bytes <= 900_000:
        connection.send(b"x" * 100_000)
    with pytest.raises(ConnectionGone, match="at most 1000000 are kept"):
        connection.send(b"x" * 100_000)
    connection.close()
    theirs.close()


def test_what_is_kept_goes_out_in_order_as_the_reader_reads() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, 1, max_unsent_bytes=1 << 30)
    stream = b"".join(bytes([i]) * 50_000 for i in range(60))
    for i in range(60):
        connection.send(bytes([i]) * 50_000)
    assert connection.num_unsent_bytes > 0
    got = b""
    while len(got) < len(stream):
        got += theirs.recv(1 << 20)
        connection.flush()
    assert got == stream
    assert connection.num_unsent_bytes == 0
    connection.close()
    theirs.close()


def test_a_reader_that_has_closed_is_gone() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    connection = Connection(ours, 1, max_unsent_bytes=1 << 30)
    with pytest.raises(ConnectionGone):
        connection.send(b"x")
    with pytest.raises(ConnectionGone):
        connection.receive()
    connection.close()
