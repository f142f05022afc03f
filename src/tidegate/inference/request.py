"""One request as the engine sees it: tokens in, rules, nothing of text or HTTP."""

import msgspec

from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.hop import HopLabels
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script


class InferenceRequest(msgspec.Struct, frozen=True, array_like=True):
    """What to generate.

    `prompt` holds token ids as little-endian unsigned 32-bit integers: a long prompt is viewed, never parsed.
    `num_logprobs` is None for none, 0 for the chosen token's only, n for n alternatives as well; the same for
    `num_prompt_logprobs`, of which those before position `first_scored` are not wanted. `priority`: lower runs first.
    With `pooling` the prompt is read and nothing is generated: its one choice ends in a delta with `pooled`. `hop` is
    for logs and traces. New fields are appended with defaults.
    """

    request_id: str
    prompt: bytes
    sampling: SamplingParams
    stop: StopRules
    num_choices: int = 1
    num_logprobs: int | None = None
    num_prompt_logprobs: int | None = None
    priority: int = 0
    cache_salt: bytes = b""
    script: Script | None = None
    grammar: GrammarRule | None = None
    pooling: PoolingTask | None = None
    first_scored: int = 0
    hop: HopLabels | None = None

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt) // 4
