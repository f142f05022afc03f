"""Requests for tests, by what matters in them."""

from collections.abc import Sequence

import numpy as np

from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script


def pack_tokens(token_ids: Sequence[int]) -> bytes:
    """Returns token ids as the engine takes them."""
    return np.array(token_ids, dtype="<u4").tobytes()


def make_request(
    request_id: str,
    prompt: Sequence[int] | str,
    *,
    max_tokens: int = 8,
    stop: StopRules | None = None,
    sampling: SamplingParams | None = None,
    num_choices: int = 1,
    num_logprobs: int | None = None,
    num_prompt_logprobs: int | None = None,
    priority: int = 0,
    script: Script | None = None,
) -> InferenceRequest:
    """Returns a greedy request. A prompt given as text has one token for each byte; `stop` replaces `max_tokens`."""
    token_ids = list(prompt.encode()) if isinstance(prompt, str) else prompt
    return InferenceRequest(
        request_id=request_id,
        prompt=pack_tokens(token_ids),
        sampling=sampling if sampling is not None else SamplingParams(temperature=0.0),
        stop=stop if stop is not None else StopRules(max_tokens=max_tokens),
        num_choices=num_choices,
        num_logprobs=num_logprobs,
        num_prompt_logprobs=num_prompt_logprobs,
        priority=priority,
        script=script,
    )
