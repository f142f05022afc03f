"""What LocalEngine learns from losses: poison, farewells, flushes; and its bounds."""

import msgspec
import pytest

from tidegate.engine.framing import encode_frame
from tidegate.engine.messages import CacheFlushed, EngineReady, Farewell
from tidegate.engines.local import channel as channel_module
from tidegate.engines.local.client import MAX_FLUSHES
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable
from tidegate.inference.fingerprint import fingerprint
from tidegate.inference.finish import EngineFinish
from tidegate.inference.hop import HopLabels
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock


def make_request(request_id: str, *, token: int = 65, seed: int = 3, max_tokens: int = 8) -> InferenceRequest:
    rules = StopRules(max_tokens=max_tokens, ignore_eos=True)
    return InferenceRequest(request_id, bytes([token, 0, 0, 0]) * 3, SamplingParams(seed=seed), rules)


def make_pair() -> EnginePair:
    return EnginePair(simulated_core, ManualClock())


def die_with(pair: EnginePair, *requests: InferenceRequest) -> list[RecordingSink]:
    sinks = [RecordingSink() for _ in requests]
    for request, sink in zip(requests, sinks, strict=True):
        pair.engine.submit(request, sink)
    pair.turn()
    pair.restart()
    return sinks


def test_what_the_engine_died_with_twice_is_refused_under_any_id_and_seed() -> None:
    pair = make_pair()
    sinks = die_with(pair, make_request("first", seed=1)) + die_with(pair, make_request("second", seed=2))
    assert all(isinstance(sink.error, EngineLost) for sink in sinks)
    sink = RecordingSink()
    with pytest.raises(EngineRefused, match="for a while"):
        pair.engine.submit(make_request("third", seed=3), sink)
    assert not sink.has_ended
    assert pair.engine.num_open == 0
    other = RecordingSink()
    pair.engine.submit(make_request("other", token=66), other)
    pair.run()
    assert other.finishes == {0: EngineFinish.LENGTH}
    status = pair.engine.statistics()
    assert (status.num_poison_suspects, status.num_poison_refusals) == (1, 1)


def test_what_completes_between_two_deaths_is_not_refused() -> None:
    pair = make_pair()
    die_with(pair, make_request("a"))
    pair.engine.submit(make_request("b"), RecordingSink())
    pair.run()
    assert pair.engine.statistics().num_poison_suspects == 0
    die_with(pair, make_request("c"))
    again = RecordingSink()
    pair.engine.submit(make_request("d"), again)
    pair.run()
    assert again.finishes == {0: EngineFinish.LENGTH}


def shared_by_two() -> list[EnginePair]:
    """Returns an engine as two server processes have it, which tell each other what they hold against requests."""
    watches = [PoisonWatch(), PoisonWatch()]
    watches[0].on_blame, watches[1].on_blame = watches[1].take, watches[0].take
    return [EnginePair(simulated_core, ManualClock(), is_ready=False, poison=watch) for watch in watches]


def die_for_both(pairs: list[EnginePair], epoch: int, life: str | None) -> None:
    """One request in two processes, once more under another id; both lose their connection."""
    for pair in pairs:
        pair.start()
        pair.connect(EngineReady(epoch, pair.model, life=life))
        pair.engine.submit(make_request(f"r{epoch}"), RecordingSink())
        pair.turn()
    for pair in pairs:
        pair.lose()


def test_a_death_that_two_server_processes_saw_counts_once_and_the_next_one_again() -> None:
    pairs = shared_by_two()
    die_for_both(pairs, 1, "first")
    for pair in pairs:
        assert pair.engine.statistics().num_poison_suspects == 1
    die_for_both(pairs, 2, "second")
    for pair in pairs:
        pair.start()
        pair.connect(EngineReady(3, pair.model, life="third"))
        with pytest.raises(EngineRefused):
            pair.engine.submit(make_request("last"), RecordingSink())


def test_a_process_dies_once_however_often_connections_to_it_are_lost() -> None:
    pairs = shared_by_two()
    for epoch in (1, 2, 3):
        die_for_both(pairs, epoch, "the only one")


def test_starts_of_which_the_engine_tells_nothing_are_told_apart_all_the_same() -> None:
    pairs = shared_by_two()[:1]
    die_for_both(pairs, 1, None)
    die_for_both(pairs, 2, None)
    with pytest.raises(EngineRefused):
        die_for_both(pairs, 3, None)


def test_hanging_up_blames_nobody() -> None:
    pair = make_pair()
    for name in "abc":
        sink = RecordingSink()
        pair.engine.submit(make_request(name), sink)
        pair.turn()
        pair.channel.close()
        pair.lose()
        assert isinstance(sink.error, EngineLost)
        pair.start()
        pair.connect()
    assert pair.engine.statistics().num_poison_suspects == 0


def test_an_engine_that_was_told_to_end_blames_nobody() -> None:
    pair = make_pair()
    for name in "abc":
        sink = RecordingSink()
        pair.engine.submit(make_request(name), sink)
        pair.turn()
        pair.feed(encode_frame(Farewell()))
        pair.restart()
        assert isinstance(sink.error, EngineLost)
    assert pair.engine.statistics().num_poison_suspects == 0


DIFFERENT: list[tuple[str, InferenceRequest]] = [
    ("another prompt", make_request("x", token=66)),
    ("another budget", make_request("x", max_tokens=9)),
    ("more log-probabilities", InferenceRequest("x", b"A\0\0\0" * 3, SamplingParams(), StopRules(8), num_logprobs=2)),
]


@pytest.mark.parametrize("other", [row[1] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT])
def test_requests_for_other_work_have_other_fingerprints(other: InferenceRequest) -> None:
    assert fingerprint(make_request("x")) != fingerprint(other)
    assert fingerprint(make_request("x", seed=1)) == fingerprint(make_request("y", seed=2))


def test_a_flush_is_answered_by_the_engine_or_ended_by_its_loss() -> None:
    pair = make_pair()
    answers: list[int | None] = []
    pair.engine.flush_cache(answers.append)
    pair.turn()
    assert answers == [0]
    pair.feed(encode_frame(CacheFlushed(99, 5)))
    pair.engine.flush_cache(answers.append)
    pair.lose()
    assert answers == [0, None]
    with pytest.raises(EngineUnavailable):
        pair.engine.flush_cache(answers.append)


def test_flushes_that_wait_are_bounded() -> None:  # OVL-8
    pair = make_pair()
    answers: list[int | None] = []
    for _ in range(MAX_FLUSHES):
        pair.engine.flush_cache(answers.append)
    with pytest.raises(EngineUnavailable):
        pair.engine.flush_cache(answers.append)
    pair.turn()
    assert len(answers) == MAX_FLUSHES


def test_commands_of_one_turn_are_bounded_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:  # OVL-8
    monkeypatch.setattr(channel_module, "MAX_UNSENT_BYTES", 10_000)
    pair = make_pair()
    num_taken = 0
    with pytest.raises(EngineUnavailable, match="keep up"):
        for number in range(1000):
            pair.engine.submit(make_request(f"r{number}"), RecordingSink())
            num_taken += 1
    assert 0 < num_taken < 1000
    pair.turn()
    pair.engine.submit(make_request("after"), RecordingSink())
    assert pair.engine.num_open == num_taken + 1


def test_a_trace_of_its_own_makes_no_other_work_of_a_request() -> None:
    plain = make_request("x")
    traced = msgspec.structs.replace(plain, hop=HopLabels("00-1-2-01", "a=1", "mine"))
    assert fingerprint(plain) == fingerprint(traced)
