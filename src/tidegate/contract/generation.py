"""The request fields that chat completions and completions share: OpenAI's, then ours (CONTRACT.md section 4).

`response_format` is OpenAI's for chat, and means the same for completions here.
"""

from typing import Annotated

from msgspec import Meta, Struct

from tidegate.contract.bounds import (
    CacheSalt,
    Count,
    Label,
    Milliseconds,
    MinP,
    NonEmptyText,
    Penalty,
    PositiveCount,
    Priority,
    RepetitionPenalty,
    Seed,
    Temperature,
    TokenIdNumber,
    TopK,
    TopLogprobs,
    TopP,
)
from tidegate.contract.response_format import ResponseFormat, StructuredOutputs
from tidegate.contract.script_body import ScriptBody

LogitBias = dict[str, Annotated[float, Meta(ge=-100, le=100)]]
"""From a token id, as a decimal string, to what is added to its logit."""


class StreamOptions(Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    continuous_usage_stats: bool | None = None


class GenerationRequest(Struct, frozen=True, kw_only=True):
    """Base of both generating requests. Every optional field: null means absent. Of equal keys the last one counts."""

    model: NonEmptyText
    n: PositiveCount | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: LogitBias | None = None
    max_tokens: Count | None = None
    seed: Seed | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Label | None = None
    response_format: ResponseFormat | None = None

    top_k: TopK | None = None
    min_p: MinP | None = None
    repetition_penalty: RepetitionPenalty | None = None
    min_tokens: Count | None = None
    stop_token_ids: list[TokenIdNumber] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    bad_words: list[str] | None = None
    allowed_token_ids: list[TokenIdNumber] | None = None
    priority: Priority | None = None
    cache_salt: CacheSalt | None = None
    return_token_ids: bool | None = None
    prompt_logprobs: TopLogprobs | None = None
    structured_outputs: StructuredOutputs | None = None
    deadline_ms: Milliseconds | None = None
    first_token_deadline_ms: Milliseconds | None = None
    x_script: ScriptBody | None = None
