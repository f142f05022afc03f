"""How to choose a token from logits."""

import msgspec


class SamplingParams(msgspec.Struct, frozen=True, array_like=True):
    """Sampling parameters of one request, ranges already checked (CONTRACT.md section 4).

    `seed` is always present: where the caller gave none the server mints one. Token ids are in the vocabulary.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 means off."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    """Token sequences that must not be completed."""


class StopRules(msgspec.Struct, frozen=True, array_like=True):
    """When the engine ends a choice by itself. Stop strings are text, and so the server's affair.

    Below `min_tokens` neither an end token nor a stop token may be sampled. `max_tokens` is the largest number of
    tokens generated for one choice; 0 means prefill only.
    """

    max_tokens: int
    min_tokens: int = 0
    token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
