"""The player alone: what it answers at each position of a script."""

import math

import numpy as np
import pytest

from tidegate.backends.scripted import DEFAULT_TEXT, ScriptPlayer
from tidegate.core.backend import StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script, ScriptChoice

NO_LOGITS = StepLogits([(0, 0)], np.zeros((1, 1), np.float32))


def request_of(script: Script | None, num_logprobs: int | None = None) -> InferenceRequest:
    return InferenceRequest(
        "r", bytes(8), SamplingParams(), StopRules(9999), 1, num_logprobs, num_logprobs, script=script
    )


def play(part: ScriptChoice, num_logprobs: int | None = None) -> list[Chosen]:
    """Returns all answers up to the one that ends the sequence."""
    player = ScriptPlayer()
    player.open(1, request_of(Script((part,)), num_logprobs), 0)
    answers: list[Chosen] = []
    num_generated = 0
    while not answers or answers[-1].finish is None:
        answers += player.choose([ChooseRow(1, 0, num_generated)], NO_LOGITS)
        num_generated += len(answers[-1].token_ids)
    return answers


Answer = tuple[list[int], EngineFinish | None, float]
EOS, FAILED = EngineFinish.EOS, EngineFinish.FAILED

CASES: dict[str, tuple[ScriptChoice, list[Answer]]] = {
    "tokens in order, the end with the last": (ScriptChoice((7, 8)), [([7], None, 0), ([8], EOS, 0)]),
    "no tokens at all": (ScriptChoice(()), [([], EOS, 0)]),
    "no repetition of tokens": (ScriptChoice((1,), repeat=0), [([], EOS, 0)]),
    "repeat": (ScriptChoice((1, 2), repeat=2), [([1], None, 0), ([2], None, 0), ([1], None, 0), ([2], EOS, 0)]),
    "length": (ScriptChoice((1,), finish=EngineFinish.LENGTH), [([1], EngineFinish.LENGTH, 0)]),
    "abort in a step of its own": (
        ScriptChoice((1,), finish=EngineFinish.ABORTED),
        [([1], None, 0), ([], EngineFinish.ABORTED, 0)],
    ),
    "failure at the end of the list": (ScriptChoice((1,), finish=FAILED), [([1], None, 0), ([], FAILED, 0)]),
    "failure before the first token": (ScriptChoice((1, 2), error_after=0), [([], FAILED, 0)]),
    "failure without tokens": (ScriptChoice((), error_after=0, finish=FAILED), [([], FAILED, 0)]),
    "failure in the middle": (ScriptChoice((1, 2, 3), error_after=1), [([1], None, 0), ([], FAILED, 0)]),
    "failure cuts a step": (
        ScriptChoice((1, 2, 3), error_after=2, step_tokens=(3,)),
        [([1, 2], None, 0), ([], FAILED, 0)],
    ),
    "failure beyond the list never comes": (ScriptChoice((1,), error_after=2), [([1], EOS, 0)]),
    "steps of several tokens, then of one": (
        ScriptChoice((1, 2, 3, 4, 5), step_tokens=(2, 1)),
        [([1, 2], None, 0), ([3], None, 0), ([4], None, 0), ([5], EOS, 0)],
    ),
    "a step longer than the rest": (ScriptChoice((1, 2), step_tokens=(1, 9)), [([1], None, 0), ([2], EOS, 0)]),
    "a step of nothing is no step": (ScriptChoice((1, 2), step_tokens=(0, 2)), [([1, 2], EOS, 0)]),
    "a delay before the first token is an answer without tokens": (
        ScriptChoice((1, 2), delays_s=(0.5, 2.0)),
        [([], None, 0.5), ([1], None, 2.0), ([2], EOS, 0)],
    ),
    "no delay before the first": (ScriptChoice((1, 2), delays_s=(0.0, 20.0)), [([1], None, 20.0), ([2], EOS, 0)]),
    "delays go round": (
        ScriptChoice((1,), repeat=3, delays_s=(1.0, 0.25)),
        [([], None, 1.0), ([1], None, 0.25), ([1], None, 1.0), ([1], EOS, 0)],
    ),
    "a step waits for all its tokens": (
        ScriptChoice((1, 2, 3, 4), delays_s=(1.0, 2.0), step_tokens=(2, 2)),
        [([], None, 3.0), ([1, 2], None, 3.0), ([3, 4], EOS, 0)],
    ),
    "no delay before a failure": (
        ScriptChoice((1, 2), delays_s=(1.0,), error_after=1),
        [([], None, 1.0), ([1], None, 0), ([], FAILED, 0)],
    ),
    "a negative delay is none": (ScriptChoice((1, 2), delays_s=(-1.0,)), [([1], None, 0), ([2], EOS, 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_script(name: str) -> None:
    part, expected = CASES[name]
    answers = play(part)
    assert [(answer.token_ids, answer.finish, answer.resume_after_s) for answer in answers] == expected
    assert [answer.error is not None for answer in answers] == [finish is FAILED for _, finish, _ in expected]
    assert all(answer.logprobs is None for answer in answers)


def test_each_choice_plays_its_own_part_and_they_go_round() -> None:
    player = ScriptPlayer()
    script = Script((ScriptChoice((1, 2)), ScriptChoice((3,))))
    for choice in range(3):
        player.open(choice, request_of(script), choice)
    answers = player.choose([ChooseRow(key, 0, 0) for key in (2, 0, 1)], NO_LOGITS)
    assert [answer.token_ids for answer in answers] == [[1], [1], [3]]
    player.close(0)
    player.close(0)
    with pytest.raises(KeyError):
        player.choose([ChooseRow(0, 0, 1)], NO_LOGITS)


def test_a_rewound_sequence_goes_on_where_its_tokens_end() -> None:
    player = ScriptPlayer()
    player.open(1, request_of(Script((ScriptChoice((1, 2, 3, 4, 5), step_tokens=(2, 2)),))), 0)
    seen = [player.choose([ChooseRow(1, 0, start)], NO_LOGITS)[0].token_ids for start in (0, 2, 0, 3, 4)]
    assert seen == [[1, 2], [3, 4], [1, 2], [4], [5]]


def test_a_request_without_a_script_gets_the_fixed_text() -> None:
    player = ScriptPlayer()
    player.open(1, request_of(None), 0)
    text = b"".join(
        bytes(player.choose([ChooseRow(1, 0, index)], NO_LOGITS)[0].token_ids) for index in range(len(DEFAULT_TEXT))
    )
    assert text.decode() == DEFAULT_TEXT
    player.open(2, request_of(Script(())), 0)
    assert player.choose([ChooseRow(2, 0, 0)], NO_LOGITS)[0].finish is EOS


TOP = ((((7, -0.1), (9, -3.0))), ((9, -0.2), (8, -0.3)))
LOGPROB_CASES: dict[str, tuple[ScriptChoice, int | None, list[TokenLogprob] | None]] = {
    "not asked for": (ScriptChoice((7,), logprobs=(-0.1,)), None, None),
    "without alternatives": (ScriptChoice((7,), logprobs=(-0.1,), top=TOP), 0, [TokenLogprob(7, -0.1)]),
    "cut to the number asked for": (
        ScriptChoice((7, 8), logprobs=(-0.1, -0.3), top=TOP, step_tokens=(2,)),
        1,
        [TokenLogprob(7, -0.1, ((7, -0.1),)), TokenLogprob(8, -0.3, ((9, -0.2),))],
    ),
    "most likely first": (
        ScriptChoice((7,), logprobs=(-1.0,), top=(((8, -5.0), (7, -1.0)),)),
        2,
        [TokenLogprob(7, -1.0, ((7, -1.0), (8, -5.0)))],
    ),
    "the token's own value where only alternatives are given": (
        ScriptChoice((9,), top=TOP),
        0,
        [TokenLogprob(9, -3.0)],
    ),
    "nothing given": (ScriptChoice((7,)), 3, [TokenLogprob(7, -0.5, ((7, -0.5),))]),
    "nothing given, none wanted": (ScriptChoice((7,)), 0, [TokenLogprob(7, -0.5)]),
    "an empty list of alternatives": (ScriptChoice((7,), top=((),)), 2, [TokenLogprob(7, -0.5)]),
    "too few given": (
        ScriptChoice((7, 8), logprobs=(-2.0,), step_tokens=(2,)),
        0,
        [TokenLogprob(7, -2.0), TokenLogprob(8, -0.5)],
    ),
    "never infinite": (
        ScriptChoice((7,), logprobs=(-math.inf,), top=(((7, -math.inf), (8, math.nan), (9, 0.5)),)),
        3,
        [TokenLogprob(7, -9999.0, ((9, 0.0), (7, -9999.0), (8, -9999.0)))],
    ),
    "again with each repetition": (
        ScriptChoice((7,), repeat=2, logprobs=(-2.0,), step_tokens=(2,)),
        0,
        [TokenLogprob(7, -2.0), TokenLogprob(7, -2.0)],
    ),
}


@pytest.mark.parametrize("name", LOGPROB_CASES)
def test_logprobs(name: str) -> None:
    part, num_logprobs, expected = LOGPROB_CASES[name]
    assert play(part, num_logprobs)[-1].logprobs == expected


def test_prompt_scores_follow_the_positions_that_the_rows_were_fed() -> None:
    player = ScriptPlayer()
    script = Script((ScriptChoice((1,)),), prompt_logprobs=(None, -1.0, -2.0, -math.inf))
    player.open(1, request_of(script, 1), 0)
    logits = StepLogits([(9, 50), (0, 1), (0, 2), (0, 3)], np.zeros((4, 1), np.float32))
    assert player.score_prompt(1, 1, [61, 62, 63], logits) == [
        TokenLogprob(61, -2.0, ((61, -2.0),)),
        TokenLogprob(62, -9999.0, ((62, -9999.0),)),
        TokenLogprob(63, -0.5, ((63, -0.5),)),
    ]
    player.open(2, request_of(None, 0), 0)
    assert player.score_prompt(2, 1, [61], logits) == [TokenLogprob(61, -0.5)]
