"""Token-level ends, as a table."""

import pytest

from tidegate.core.stop_check import StopCheck, Verdict
from tidegate.inference.finish import EngineFinish
from tidegate.inference.sampling import StopRules

EOS, LENGTH, STOP_TOKEN = EngineFinish.EOS, EngineFinish.LENGTH, EngineFinish.STOP_TOKEN
CHECK = StopCheck(frozenset({7, 8}), max_len=20)
_STOP_7, _STOP_THIRD = Verdict(1, STOP_TOKEN, 7), Verdict(3, STOP_TOKEN, 4)

# name, rules, new tokens, prompt tokens, generated before, verdict
CASES = [
    ("nothing ends it", StopRules(9), [1], 3, 0, Verdict(1)),
    ("nothing new", StopRules(9), [], 3, 2, Verdict(0)),
    ("end token", StopRules(9), [7], 3, 0, Verdict(1, EOS)),
    ("second end token", StopRules(9), [8], 3, 0, Verdict(1, EOS)),
    ("end token ignored", StopRules(9, ignore_eos=True), [7], 3, 0, Verdict(1)),
    ("stop token", StopRules(9, token_ids=(4, 5)), [5], 3, 0, Verdict(1, STOP_TOKEN, 5)),
    ("stop token that is an end token", StopRules(9, token_ids=(7,)), [7], 3, 0, Verdict(1, STOP_TOKEN, 7)),
    ("ignored end that is a stop token", StopRules(9, token_ids=(7,), ignore_eos=True), [7], 3, 0, _STOP_7),
    ("token budget", StopRules(3), [1], 3, 2, Verdict(1, LENGTH)),
    ("end token on the last allowed one", StopRules(3), [7], 3, 2, Verdict(1, EOS)),
    ("stop token on the last allowed one", StopRules(3, token_ids=(4,)), [4], 3, 2, Verdict(1, STOP_TOKEN, 4)),
    ("context full", StopRules(99), [1], 15, 4, Verdict(1, LENGTH)),
    ("one before the context is full", StopRules(99), [1], 15, 3, Verdict(1)),
    ("several, none ends it", StopRules(9), [1, 2, 3], 3, 0, Verdict(3)),
    ("several, the end inside", StopRules(9), [1, 7, 3], 3, 0, Verdict(2, EOS)),
    ("several, the budget inside", StopRules(5), [1, 2, 3, 4, 5, 6], 3, 0, Verdict(5, LENGTH)),
    ("several, the budget at the last", StopRules(3), [1, 2, 3], 3, 0, Verdict(3, LENGTH)),
    ("several, stop before end", StopRules(9, token_ids=(2,)), [1, 2, 7], 3, 0, Verdict(2, STOP_TOKEN, 2)),
    ("several, the context inside", StopRules(99), [1, 2, 3], 18, 0, Verdict(2, LENGTH)),
    ("end token below the minimum", StopRules(9, min_tokens=2), [7], 3, 1, Verdict(1)),
    ("end token after the minimum", StopRules(9, min_tokens=2), [7], 3, 2, Verdict(1, EOS)),
    ("stop token below the minimum", StopRules(9, min_tokens=2, token_ids=(4,)), [4] * 3, 3, 0, _STOP_THIRD),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "token_ids", "num_prompt", "num_generated", "verdict"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_tokens_are_judged_in_their_order(
    rules: StopRules, token_ids: list[int], num_prompt: int, num_generated: int, verdict: Verdict
) -> None:
    assert CHECK.judge(rules, token_ids, num_prompt=num_prompt, num_generated=num_generated) == verdict


@pytest.mark.parametrize(
    ("max_tokens", "num_prompt", "expected"), [(5, 3, 5), (5, 17, 3), (5, 20, 0), (0, 3, 0), (17, 3, 17), (18, 3, 17)]
)
def test_room_is_the_budget_or_what_the_context_leaves(max_tokens: int, num_prompt: int, expected: int) -> None:
    assert CHECK.max_generated(StopRules(max_tokens), num_prompt=num_prompt) == expected


def test_any_grouping_of_tokens_ends_at_the_same_one() -> None:
    rules = StopRules(6, min_tokens=1, token_ids=(4,))
    for tokens in ([1, 2, 4, 1], [7, 1, 7, 1], [1, 1, 1, 1, 1, 1, 1], [4, 7, 1]):
        whole = CHECK.judge(rules, tokens, num_prompt=3, num_generated=0)
        for cut in range(len(tokens) + 1):
            first = CHECK.judge(rules, tokens[:cut], num_prompt=3, num_generated=0)
            if first.finish is not None:
                assert first == whole
            else:
                second = CHECK.judge(rules, tokens[cut:], num_prompt=3, num_generated=cut)
                assert Verdict(cut + second.num_kept, second.finish, second.stop_token) == whole
