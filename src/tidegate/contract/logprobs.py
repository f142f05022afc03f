"""Log-probabilities on the wire: the chat form, the completions form, and the form for prompts."""

import math

from msgspec import Struct

MINUS_INFINITY = -9999.0
"""Stands for minus infinity, and for whatever is not a finite number."""


def wire_logprob(value: float) -> float:
    """Returns `value`, or -9999.0 where it is not finite."""
    return value if math.isfinite(value) else MINUS_INFINITY


class TopLogprob(Struct, frozen=True, kw_only=True):
    """An alternative. `bytes` are the token's own, also where they are part of a character."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(Struct, frozen=True, kw_only=True):
    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[TopLogprob]


class ChatLogprobs(Struct, frozen=True, kw_only=True):
    content: list[TokenLogprob] | None
    refusal: list[TokenLogprob] | None = None


class CompletionLogprobs(Struct, frozen=True, kw_only=True):
    """Four lists of equal length. `top_logprobs` is None where no alternatives were asked for.

    `text_offset` counts characters from the start of prompt and completion together. The first token of an echoed
    prompt has no log-probability: None.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class PromptLogprob(Struct, frozen=True, kw_only=True):
    logprob: float
    decoded_token: str


PromptLogprobs = list[dict[str, PromptLogprob] | None]
"""Extension `prompt_logprobs`: one entry for each prompt token, from token id to value; the first one is null."""
