"""Who hears what: several clients of one core, by hand."""

import pytest

from tidegate.core.step import EngineCore
from tidegate.engine.framing import FramingError
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    CacheFlushed,
    EngineReady,
    FlushCache,
    HoldRequest,
    Ping,
    Pong,
    StepOutputs,
)
from tidegate.engine_process.switchboard import Switchboard
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.engine_pair import simulated_core


def add(request_id: str, *, max_tokens: int = 500, num_choices: int = 1) -> AddRequest:
    rules = StopRules(max_tokens=max_tokens, ignore_eos=True)
    return AddRequest(InferenceRequest(request_id, b"\x41\0\0\0" * 20, SamplingParams(), rules, num_choices))


class Board:
    """A switchboard with its core, and two clients, 1 and 2."""

    def __init__(self) -> None:
        self.core: EngineCore
        self.core, model = simulated_core()
        self.board = Switchboard(self.core, 4, model, "this start")
        first, second = self.board.join(1), self.board.join(2)
        assert first == second == EngineReady(4, model, life="this start")

    def step(self) -> dict[int, list[TokenDelta]]:
        parts = self.board.route(self.core.step(0.0), 0.25)
        assert len({client for client, _ in parts}) == len(parts)
        return {client: outputs.outputs for client, outputs in parts}

    def run(self) -> None:
        while self.core.next_wake_at(0.0) is not None:
            self.step()
        self.core.check_integrity()


def test_each_client_hears_of_its_own_requests_only() -> None:
    one = Board()
    one.board.receive(1, add("a"), 0.0)
    one.board.receive(2, add("b"), 0.0)
    one.board.receive(2, add("c"), 0.0)
    heard = [one.step() for _ in range(3)][-1]
    assert {client: {delta.request_id for delta in deltas} for client, deltas in heard.items()} == {
        1: {"a"},
        2: {"b", "c"},
    }


def test_a_client_that_leaves_has_its_requests_aborted_by_the_next_step() -> None:
    one = Board()
    one.board.receive(1, add("a", num_choices=2), 0.0)
    one.board.receive(2, add("b", max_tokens=6), 0.0)
    one.step()
    one.board.leave(1, 0.0)
    one.board.leave(1, 0.0)
    heard = one.step()
    assert set(heard) == {2}
    assert one.board.num_live == 1
    one.run()
    assert one.board.num_live == 0
    assert one.core.statistics().blocks_used == 0


def test_a_command_of_a_client_that_has_left_is_ignored() -> None:
    one = Board()
    one.board.leave(1, 0.0)
    assert one.board.receive(1, add("a"), 0.0) is None
    assert one.board.num_live == 0
    assert one.core.next_wake_at(0.0) is None


@pytest.mark.parametrize("command", [AbortRequest("a"), AbortRequest("a", 0), HoldRequest("a", True)])
def test_nobody_touches_a_request_of_another(command: AbortRequest | HoldRequest) -> None:
    one = Board()
    one.board.receive(1, add("a", max_tokens=6), 0.0)
    one.board.receive(2, command, 0.0)
    one.board.receive(2, AbortRequest("nobody"), 0.0)
    finishes = []
    while one.core.next_wake_at(0.0) is not None:
        finishes += [delta.finish for delta in one.step().get(1, []) if delta.finish is not None]
    assert finishes == [EngineFinish.LENGTH]


def test_an_id_in_use_by_another_client_is_refused_and_harms_nobody() -> None:
    one = Board()
    one.board.receive(1, add("a", max_tokens=6), 0.0)
    answer = one.board.receive(2, add("a", num_choices=2), 0.0)
    assert isinstance(answer, StepOutputs)
    assert [(delta.choice, delta.finish, delta.error) for delta in answer.outputs] == [
        (0, EngineFinish.FAILED, "this request id is in use"),
        (1, EngineFinish.FAILED, "this request id is in use"),
    ]
    one.board.receive(2, AbortRequest("a"), 0.0)
    one.run()
    assert one.board.num_live == 0


@pytest.mark.parametrize("num_choices", [0, -3])
def test_a_request_without_choices_is_a_broken_client(num_choices: int) -> None:
    with pytest.raises(FramingError, match="choices"):
        Board().board.receive(1, add("a", num_choices=num_choices), 0.0)


def test_a_client_that_adds_its_own_request_twice_is_broken() -> None:
    one = Board()
    one.board.receive(1, add("a"), 0.0)
    with pytest.raises(FramingError, match="twice"):
        one.board.receive(1, add("a"), 0.0)


def test_an_id_may_be_used_again_once_it_has_ended() -> None:
    one = Board()
    for _ in range(3):
        one.board.receive(1, add("a", max_tokens=2), 0.0)
        one.run()


def test_a_ping_is_answered_without_a_step() -> None:
    answer = Board().board.receive(1, Ping(9), 0.0)
    assert isinstance(answer, Pong)
    assert answer.nonce == 9


def test_a_step_without_outputs_tells_everybody_once() -> None:
    one = Board()
    assert [client for client, _ in one.board.catch_up()] == [1, 2]
    assert one.board.catch_up() == []
    one.board.receive(1, add("a", max_tokens=1), 0.0)
    last: dict[int, StepOutputs] = {}
    while one.core.next_wake_at(0.0) is not None:
        last |= dict(one.board.route(one.core.step(0.0), 0.25))
    last |= dict(one.board.catch_up())
    assert one.board.catch_up() == []
    assert last[2].outputs == []
    assert last[1].gauges == last[2].gauges
    assert (last[1].gauges.blocks_used, last[1].gauges.step_s) == (0, 0.25)


def test_a_flush_is_answered_to_whoever_asked_and_touches_no_request() -> None:
    one = Board()
    one.board.receive(1, add("a"), 0.0)
    one.step()
    used = one.core.statistics().blocks_used
    assert one.board.receive(2, FlushCache(7), 0.0) == CacheFlushed(7, 0)
    assert one.core.statistics().blocks_used == used > 0
    assert one.board.receive(3, FlushCache(8), 0.0) is None, "a stranger"
    one.run()
