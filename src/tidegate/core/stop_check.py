"""When a sequence ends by its tokens.

Decides on ids and counts alone: end tokens, the request's stop tokens, the token budget, the context. Stop strings are
text, and so the server's affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.inference.finish import EngineFinish
from tidegate.inference.sampling import StopRules


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many of the new tokens count, and whether the last of them ends the sequence."""

    num_kept: int
    finish: EngineFinish | None = None
    stop_token: int | None = None


@dataclass(frozen=True, slots=True)
class StopCheck:
    """The model's part of the rules. `max_len` bounds prompt and output together, in tokens."""

    eos_token_ids: frozenset[int]
    max_len: int

    def max_generated(self, rules: StopRules, *, num_prompt: int) -> int:
        """Returns how many tokens one choice can get at most."""
        return max(0, min(rules.max_tokens, self.max_len - num_prompt))

    def judge(self, rules: StopRules, token_ids: Sequence[int], *, num_prompt: int, num_generated: int) -> Verdict:
        """Judges new tokens in their order; those after the end are not kept.

        `num_generated` counts tokens before them. A stop token that is also an end token counts as a stop token. Below
        `min_tokens` neither ends anything, for choosers that do not sample.
        """
        limit = self.max_generated(rules, num_prompt=num_prompt)
        for index, token_id in enumerate(token_ids):
            num_before = num_generated + index
            if num_before >= limit:
                return Verdict(index, EngineFinish.LENGTH)
            if num_before >= rules.min_tokens:
                if token_id in rules.token_ids:
                    return Verdict(index + 1, EngineFinish.STOP_TOKEN, token_id)
                if token_id in self.eos_token_ids and not rules.ignore_eos:
                    return Verdict(index + 1, EngineFinish.EOS)
            if num_before + 1 == limit:
                return Verdict(index + 1, EngineFinish.LENGTH)
        return Verdict(len(token_ids))
