"""Scripts through the whole core, on a clock that jumps to the next wake: tokens, ends, times and accounts."""

import numpy as np
import pytest

from tidegate.backends.scripted import DEFAULT_TEXT, EOS_TOKEN_ID, ScriptedBackend, ScriptPlayer
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AbortRequest, AddRequest
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script, ScriptChoice

PROMPT = np.array([104, 105, 106], "<u4").tobytes()
EOS, LENGTH, FAILED = EngineFinish.EOS, EngineFinish.LENGTH, EngineFinish.FAILED


class Run:
    """A core with the times at which its outputs came."""

    def __init__(self, *requests: InferenceRequest, num_blocks: int = 64) -> None:
        backend = ScriptedBackend(
            max_sequences=8, max_model_len=200, num_blocks=num_blocks, block_tokens=4, max_step_tokens=64
        )
        self.core = EngineCore(backend, ScriptPlayer())
        self.now = 100.0
        self.outputs: list[tuple[float, TokenDelta]] = []
        for request in requests:
            self.core.apply(AddRequest(request), self.now)

    def step(self) -> None:
        wake_at = self.core.next_wake_at(self.now)
        assert wake_at is not None
        self.now = max(self.now, wake_at)
        self.outputs += [(self.now, delta) for delta in self.core.step(self.now)]
        self.core.check_integrity()

    def to_end(self, max_steps: int = 5000) -> "Run":
        for _ in range(max_steps):
            if not self.core.has_work:
                return self
            self.step()
        raise AssertionError("the script does not end")

    def of(self, request_id: str = "r", choice: int = 0) -> list[tuple[float, TokenDelta]]:
        return [(at, d) for at, d in self.outputs if (d.request_id, d.choice) == (request_id, choice)]

    def tokens(self, request_id: str = "r", choice: int = 0) -> list[int]:
        return [token_id for _, delta in self.of(request_id, choice) for token_id in delta.token_ids]

    def end(self, request_id: str = "r", choice: int = 0) -> TokenDelta:
        deltas = [delta for _, delta in self.of(request_id, choice)]
        assert [delta.finish is not None for delta in deltas] == [False] * (len(deltas) - 1) + [True]
        return deltas[-1]


def request_of(
    *parts: ScriptChoice,
    request_id: str = "r",
    num_choices: int = 1,
    num_logprobs: int | None = None,
    stop: StopRules | None = None,
    script: Script | None = None,
) -> InferenceRequest:
    return InferenceRequest(
        request_id,
        PROMPT,
        SamplingParams(),
        stop or StopRules(max_tokens=100),
        num_choices,
        num_logprobs,
        num_logprobs,
        script=script or Script(parts) if parts or script else None,
    )


ENDS: dict[str, tuple[ScriptChoice, StopRules, list[int], EngineFinish]] = {
    "end token by itself counts nothing": (ScriptChoice((1, 2, 3, 4, 5)), StopRules(99), [1, 2, 3, 4, 5], EOS),
    "empty": (ScriptChoice(()), StopRules(99), [], EOS),
    "length by script": (ScriptChoice((1,), finish=LENGTH), StopRules(99), [1], LENGTH),
    "length by budget": (ScriptChoice((1, 2, 3), repeat=9), StopRules(5), [1, 2, 3, 1, 2], LENGTH),
    "budget inside a step": (ScriptChoice((1, 2, 3), step_tokens=(3,)), StopRules(2), [1, 2], LENGTH),
    "stop token inside a step": (
        ScriptChoice((1, 2, 3, 4), step_tokens=(4,)),
        StopRules(99, token_ids=(3,)),
        [1, 2, 3],
        EngineFinish.STOP_TOKEN,
    ),
    "stop token alone": (ScriptChoice((1, 2, 3)), StopRules(99, token_ids=(2,)), [1, 2], EngineFinish.STOP_TOKEN),
    "end token spelled out": (ScriptChoice((1, EOS_TOKEN_ID, 2)), StopRules(99), [1, EOS_TOKEN_ID], EOS),
    "failure after two": (ScriptChoice((1, 2), error_after=2, finish=FAILED), StopRules(99), [1, 2], FAILED),
    "failure at once": (ScriptChoice((), error_after=0, finish=FAILED), StopRules(99), [], FAILED),
    "abort": (ScriptChoice((1,), finish=EngineFinish.ABORTED), StopRules(99), [1], EngineFinish.ABORTED),
}


@pytest.mark.parametrize("delays_s", [(), (0.5,)])
@pytest.mark.parametrize("name", ENDS)
def test_tokens_and_end(name: str, delays_s: tuple[float, ...]) -> None:
    part, stop, tokens, finish = ENDS[name]
    part = ScriptChoice(
        part.token_ids, part.finish, None, None, part.error_after, part.repeat, delays_s, part.step_tokens
    )
    run = Run(request_of(part, stop=stop)).to_end()
    assert run.tokens() == tokens
    assert run.end().finish is finish
    assert (run.end().error is not None) == (finish is FAILED)
    assert run.core.statistics().blocks_used == 0


def test_tokens_of_a_failing_script_are_out_before_the_failure() -> None:
    run = Run(request_of(ScriptChoice((1, 2), error_after=2, finish=FAILED, step_tokens=(2,)))).to_end()
    assert [(delta.token_ids, delta.finish) for _, delta in run.of()] == [([1, 2], None), ([], FAILED)]


def test_each_token_comes_after_its_delay_the_first_too() -> None:
    run = Run(request_of(ScriptChoice((1, 2, 3), delays_s=(0.5, 2.0)))).to_end()
    times = [(at - 100.0, delta.token_ids) for at, delta in run.of() if delta.token_ids]
    assert times == [(0.5, [1]), (2.5, [2]), (3.0, [3])]


def test_queue_and_prefill_delays_add_to_the_first_tokens() -> None:
    script = Script((ScriptChoice((1,), delays_s=(1.0,)),), prefill_delay_s=0.25, queue_delay_s=4.0)
    run = Run(request_of(script=script)).to_end()
    assert [at - 100.0 for at, delta in run.of() if delta.token_ids] == [5.25]


def test_choices_play_their_own_parts_and_share_the_prompt() -> None:
    parts = (ScriptChoice((1, 2), delays_s=(1.0,)), ScriptChoice((3,)), ScriptChoice((), error_after=0))
    run = Run(request_of(*parts, num_choices=4)).to_end()
    assert [run.tokens(choice=choice) for choice in range(4)] == [[1, 2], [3], [], [1, 2]]
    assert [run.end(choice=choice).finish for choice in range(4)] == [EOS, EOS, FAILED, EOS]


def test_several_tokens_in_a_step_come_in_one_delta_with_their_own_logprobs() -> None:
    part = ScriptChoice(
        (97, 98, 99),
        logprobs=(-0.1, -0.2, -0.3),
        top=(((97, -0.1),), ((98, -0.2),), ((99, -0.3),)),
        step_tokens=(3,),
    )
    run = Run(request_of(part, num_logprobs=1)).to_end()
    assert run.end().token_ids == [97, 98, 99]
    assert run.end().logprobs == [
        TokenLogprob(97, -0.1, ((97, -0.1),)),
        TokenLogprob(98, -0.2, ((98, -0.2),)),
        TokenLogprob(99, -0.3, ((99, -0.3),)),
    ]


def test_prompt_logprobs_and_reported_counts_come_from_the_script() -> None:
    script = Script((ScriptChoice((1,)),), num_prompt_tokens=7, num_cached_tokens=2, prompt_logprobs=(None, -3.0, -4.0))
    run = Run(request_of(script=script, num_logprobs=0)).to_end()
    first = run.of()[0][1]
    assert (first.num_prompt_tokens, first.num_cached_tokens) == (7, 2)
    entries = [entry for _, delta in run.of() for entry in delta.prompt_logprobs or []]
    assert entries == [None, TokenLogprob(105, -3.0), TokenLogprob(106, -4.0)]


def test_a_request_without_a_script_says_hello() -> None:
    run = Run(request_of()).to_end()
    assert bytes(run.tokens()).decode() == DEFAULT_TEXT
    assert run.end().finish is EOS


def test_preempted_scripts_say_the_same() -> None:
    """Nine blocks for three sequences that want up to eight each: memory is taken back again and again."""
    parts = [ScriptChoice(tuple(range(i, i + 25)), delays_s=(0.0, 0.1 * i), step_tokens=(2, 1)) for i in range(3)]
    requests = [request_of(part, request_id=str(i)) for i, part in enumerate(parts)]
    run = Run(*requests, num_blocks=9).to_end()
    assert run.core.statistics().num_preemptions > 0
    for i, part in enumerate(parts):
        assert run.tokens(str(i)) == list(part.token_ids)
        assert run.end(str(i)).finish is EOS


@pytest.mark.parametrize("num_steps", [0, 1, 2, 3, 7])
def test_an_abort_ends_a_long_script_by_the_next_step(num_steps: int) -> None:
    run = Run(request_of(ScriptChoice((1, 2, 3), repeat=1000, delays_s=(0.01,)), stop=StopRules(1000), num_choices=2))
    for _ in range(num_steps):
        run.step()
    run.core.apply(AbortRequest("r"), run.now)
    run.to_end(2)
    assert [run.end(choice=choice).finish for choice in range(2)] == [EngineFinish.ABORTED] * 2
    assert run.core.statistics().blocks_used == 0
