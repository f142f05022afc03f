"""Which requests the engine cannot take at all. Decides before anything is allocated; says which limit fired."""

import numpy as np

from tidegate.inference.request import InferenceRequest


def refusal_of(request: InferenceRequest, *, vocab_size: int, max_len: int) -> str | None:
    """Returns why `request` can never run, or None. `max_len` bounds prompt and output together, in tokens."""
    if not request.prompt:
        return "prompt is empty: at least one token is needed"
    if len(request.prompt) % 4 != 0:
        return f"prompt has {len(request.prompt)} bytes, which is not a whole number of 4-byte token ids"
    if request.num_prompt_tokens > max_len:
        return f"prompt has {request.num_prompt_tokens} tokens, more than the engine's context of {max_len}"
    largest = int(np.frombuffer(request.prompt, dtype="<u4").max())
    if largest >= vocab_size:
        return f"prompt has token id {largest}, but the vocabulary has {vocab_size} tokens"
    return None
