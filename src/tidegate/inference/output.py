"""What came out of one engine step for one choice."""

import msgspec

from tidegate.inference.finish import EngineFinish


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A token's raw log-probability (natural logarithm) and its `top` alternatives, most likely first."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class TokenDelta(msgspec.Struct, array_like=True, omit_defaults=True):
    """New tokens of one choice. At most one delta for a choice has `finish`, and it is the last.

    The finishing token itself (end token, stop token) is among `token_ids`: it was generated and counts.
    `logprobs`, when asked for, has one entry for each of `token_ids`. `num_prompt_tokens` is set with the request's
    first delta, and so is `queue_s`, the seconds that the request waited in the engine before its prefill began;
    `num_cached_tokens` once, with the first one or a later one. `prompt_logprobs` arrive in order before the first
    token, possibly over several deltas; the entry of position 0 is None. `stop_token` names the member of
    `stop_token_ids` that matched. `pooled`, with `finish` POOLED, is the vector of a prompt that was only read:
    little-endian 32-bit floats, as the model gave them.
    """

    request_id: str
    choice: int
    token_ids: list[int]
    finish: EngineFinish | None = None
    logprobs: list[TokenLogprob] | None = None
    stop_token: int | None = None
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    prompt_logprobs: list[TokenLogprob | None] | None = None
    error: str | None = None
    queue_s: float = 0.0
    pooled: bytes | None = None
