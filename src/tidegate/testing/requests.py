"""Requests for tests, by what matters in them."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

import msgspec
import numpy as np

from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script


class RequestFields(TypedDict, total=False):
    """Fields of `InferenceRequest` that a test may set."""

    stop: StopRules
    sampling: SamplingParams
    num_choices: int
    num_logprobs: int | None
    num_prompt_logprobs: int | None
    first_scored: int
    priority: int
    script: Script | None
    grammar: GrammarRule | None
    cache_salt: bytes
    pooling: PoolingTask | None


def pack_tokens(token_ids: Sequence[int]) -> bytes:
    """Returns token ids as the engine takes them."""
    return np.array(token_ids, dtype="<u4").tobytes()


def seeded_request(
    request_id: str, *, num_choices: int = 1, max_tokens: int = 8, seed: int = 1, num_prompt: int = 20
) -> InferenceRequest:
    """Returns a request that runs until its `max_tokens`, as `EngineUnderTest` wants it: drawn by `seed`, the prompt of
    `num_prompt` tokens the same for all.
    """
    return InferenceRequest(
        request_id,
        pack_tokens([10 + i % 200 for i in range(num_prompt)]),
        SamplingParams(seed=seed),
        StopRules(max_tokens=max_tokens, ignore_eos=True),
        num_choices=num_choices,
    )


def make_request(
    request_id: str, prompt: Sequence[int] | str, *, max_tokens: int = 8, **fields: Unpack[RequestFields]
) -> InferenceRequest:
    """Returns a greedy request. A prompt given as text has one token for each byte; `stop` replaces `max_tokens`."""
    token_ids = list(prompt.encode()) if isinstance(prompt, str) else prompt
    request = InferenceRequest(
        request_id=request_id,
        prompt=pack_tokens(token_ids),
        sampling=SamplingParams(temperature=0.0),
        stop=StopRules(max_tokens=max_tokens),
    )
    return msgspec.structs.replace(request, **fields)
