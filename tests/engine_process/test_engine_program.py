"""The engine as a program: exit codes, signals, and the folder it lives in. A real child, killed for real."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidegate.engine.exit_code import EngineExit
from tidegate.engine.framing import FrameDecoder, decode_report, encode_frame
from tidegate.engine.messages import AddRequest, EngineReady, Ping, Pong, Report, StepOutputs
from tidegate.inference.finish import EngineFinish
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script, ScriptChoice
from tidegate.testing.requests import make_request

pytestmark = pytest.mark.process

PATIENCE_S = 60.0


class Program:
    """One engine process with its standard error kept."""

    def __init__(self, folder: Path, *more: str, backend: str = "scripted", options: str = "{}") -> None:
        self.path = folder / "e.sock"
        self._socks: list[socket.socket] = []
        self.lines: list[dict[str, object]] = []
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "tidegate.engine_process", "--socket", str(self.path)),
                *("--epoch", "5", "--backend", backend, "--options", options),
                *more,
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def wait_ready(self) -> None:
        """Reads log lines until the engine says that it is ready."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == "engine ready":
                return
        raise AssertionError("the engine ended before it was ready")

    def dial_when_ready(self) -> socket.socket:
        self.wait_ready()
        return self.dial()

    def dial(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE_S)
        self._socks.append(sock)
        sock.connect(str(self.path))
        return sock

    def close(self) -> None:
        """Kills the engine and closes every connection to it, also after a test that failed."""
        self.process.kill()
        self.process.communicate()
        for sock in self._socks:
            sock.close()

    def wait(self) -> tuple[int, list[dict[str, object]]]:
        """Returns the exit code and the log lines not read yet."""
        _, log = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def program(folder: Path) -> Iterator[Program]:
    it = Program(folder)
    it.wait_ready()
    yield it
    it.close()


def endless(request_id: str) -> AddRequest:
    script = Script((ScriptChoice((7,), repeat=100_000, delays_s=(0.001,)),))
    rules = StopRules(max_tokens=100_000)
    return AddRequest(InferenceRequest(request_id, b"\x41\0\0\0" * 40, SamplingParams(), rules, script=script))


class Reader:
    """Messages of one connection, one after the other."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = FrameDecoder()
        self._reports: list[Report] = []

    def take(self) -> Report | None:
        while not self._reports:
            data = self._sock.recv(65536)
            if not data:
                return None
            self._reports += [decode_report(frame) for frame in self._decoder.feed(data)]
        return self._reports.pop(0)

    def take_outputs(self, condition: Callable[[StepOutputs], bool]) -> StepOutputs:
        """Returns the first frame of a step that meets the condition."""
        while (report := self.take()) is not None:
            if isinstance(report, StepOutputs) and condition(report):
                return report
        raise AssertionError("the connection ended first")


def test_prompts_are_read_by_the_program_and_lost_with_it(folder: Path) -> None:
    program = Program(folder)
    try:
        sock = program.dial_when_ready()
        reader = Reader(sock)
        greeting = reader.take()
        assert isinstance(greeting, EngineReady)
        assert greeting.model.pooling is not None
        late = make_request("late", "abc", pooling=PoolingTask.EMBED, script=Script((), queue_delay_s=1e6))
        sock.sendall(encode_frame(AddRequest(late)))
        sock.sendall(encode_frame(AddRequest(make_request("now", "abc", pooling=PoolingTask.EMBED))))
        [delta] = reader.take_outputs(lambda step: bool(step.outputs)).outputs
        assert (delta.request_id, delta.finish) == ("now", EngineFinish.POOLED)
        assert len(delta.pooled or b"") == 4 * greeting.model.pooling.dimensions
        program.process.send_signal(signal.SIGKILL)
        while reader.take() is not None:
            pass
    finally:
        program.close()


def test_a_model_that_only_reads_starts_without_grammars(folder: Path) -> None:
    program = Program(folder, backend="simulated", options='{"simulated_model": "encoder", "pooling": "cls"}')
    try:
        greeting = Reader(program.dial_when_ready()).take()
        assert isinstance(greeting, EngineReady)
        assert (greeting.model.generates, greeting.model.grammar_backend) == (False, None)
        assert greeting.model.pooling is not None
        assert greeting.model.pooling.mode is PoolingMode.CLS
        assert not [line for line in program.lines if line["level"] == "warning"]
    finally:
        program.close()


def test_a_grammar_backend_that_nobody_knows_is_a_warning_and_the_engine_starts(folder: Path) -> None:
    program = Program(folder, backend="simulated", options='{"grammar_backend": "nobody"}')
    try:
        greeting = Reader(program.dial_when_ready()).take()
        assert isinstance(greeting, EngineReady)
        assert greeting.model.grammar_backend is None
        [warning] = [line for line in program.lines if line["level"] == "warning"]
        assert (warning["event"], warning["backend"]) == ("no grammars", "nobody")
        assert "none" in str(warning["why"])
    finally:
        program.close()


def test_sigterm_ends_it_cleanly_in_the_middle_of_its_work(program: Program) -> None:
    sock = program.dial()
    reader = Reader(sock)
    assert isinstance(reader.take(), EngineReady)
    sock.sendall(encode_frame(endless("a")))
    reader.take_outputs(lambda report: bool(report.outputs))
    program.process.terminate()
    while reader.take() is not None:
        pass
    code, log = program.wait()
    assert code == EngineExit.CLEAN
    assert log[-1]["event"] == "engine stopped"
    assert not program.path.exists()
    sock.close()


def test_sigint_is_for_the_parent(program: Program) -> None:
    program.process.send_signal(signal.SIGINT)
    sock = program.dial()
    sock.sendall(encode_frame(Ping(1)))
    reader = Reader(sock)
    assert isinstance(reader.take(), EngineReady)
    assert any(isinstance(report, Pong) for report in iter(reader.take, None))
    sock.close()
    program.process.terminate()
    assert program.wait()[0] == EngineExit.CLEAN


def test_the_end_of_standard_input_ends_it(program: Program) -> None:
    # Waiting closes the child's standard input, and does nothing else.
    assert program.wait()[0] == EngineExit.CLEAN


def test_the_socket_is_for_its_user_alone(program: Program) -> None:
    assert program.path.stat().st_mode & 0o077 == 0


def test_a_server_that_vanishes_has_its_requests_aborted(program: Program) -> None:
    sock = program.dial()
    reader = Reader(sock)
    sock.sendall(encode_frame(endless("a")) + encode_frame(endless("b")))
    reader.take_outputs(lambda report: bool(report.outputs))
    sock.close()
    other = program.dial()
    reader = Reader(other)
    # The gauges of an engine at rest come by themselves; nothing is asked for.
    report = reader.take_outputs(lambda report: report.gauges.blocks_used == 0)
    assert (report.gauges.num_running, report.gauges.num_waiting) == (0, 0)
    other.close()


def test_the_log_names_what_happened_and_no_prompt(program: Program) -> None:
    sock = program.dial()
    sock.sendall(b"\xff\xff\xff\xff secret")
    assert Reader(sock).take() is not None
    sock.close()
    program.process.terminate()
    _, log = program.wait()
    assert {"server connected", "server dropped", "engine stopped"} <= {str(line["event"]) for line in log}
    assert "secret" not in str(log)
    assert all(line["epoch"] == 5 and line["process_id"] == program.process.pid for line in log)


BAD_STARTS: list[tuple[str, str, int]] = [
    ("scripted", '{"max_sequences": 0}', EngineExit.USAGE),
    ("scripted", "nonsense", EngineExit.USAGE),
    ("vllm", "{}", EngineExit.USAGE),
    ("llama", "{}", EngineExit.USAGE),
    ("llama", '{"model_path": "/nowhere/model.gguf"}', EngineExit.START_FAILED),
]


@pytest.mark.parametrize(("backend", "options", "code"), BAD_STARTS)
def test_what_cannot_start_says_why_and_leaves_no_socket(
    folder: Path, backend: str, options: str, code: EngineExit
) -> None:
    program = Program(folder, backend=backend, options=options)
    _, log = program.process.communicate(timeout=PATIENCE_S)
    assert program.process.returncode == code
    assert log
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_may_enter_is_refused(folder: Path) -> None:
    folder.chmod(0o755)
    code, log = Program(folder).wait()
    assert code == EngineExit.USAGE
    assert "0700" in str(log[-1]["error"])


def test_a_socket_left_behind_by_a_killed_engine_is_replaced(folder: Path) -> None:
    first = Program(folder)
    first.wait_ready()
    first.process.kill()
    first.process.communicate()
    assert (folder / "e.sock").exists()
    second = Program(folder)
    second.wait_ready()
    second.dial().close()
    second.process.terminate()
    assert second.wait()[0] == EngineExit.CLEAN


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-P", "-m", "tidegate.engine_process", "--socket", sys.argv[1], "--epoch", "1",
     "--backend", "scripted"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
for line in child.stderr:
    if b"engine ready" in line:
        print(child.pid, flush=True)
        break
time.sleep(600)
"""


def test_an_engine_whose_parent_is_gone_already_does_not_start(folder: Path) -> None:
    program = Program(folder, "--parent-id", "1")
    assert program.wait()[0] == EngineExit.CLEAN
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd")
def test_it_does_not_outlive_its_parent(folder: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(folder / "e.sock")], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child_id = int(parent.stdout.readline())
    child_fd = os.pidfd_open(child_id)
    # A child that is stuck in native code cannot look for its parent: the kernel must do it.
    os.kill(child_id, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    ended, _, _ = select.select([child_fd], [], [], PATIENCE_S)
    os.close(child_fd)
    assert ended
