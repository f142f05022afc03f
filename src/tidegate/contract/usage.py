"""Token accounts of one request (CONTRACT.md section 13)."""

from msgspec import UNSET, Struct, UnsetType


class PromptTokensDetails(Struct, frozen=True, kw_only=True):
    cached_tokens: int = 0


class CompletionTokensDetails(Struct, frozen=True, kw_only=True):
    reasoning_tokens: int = 0


class Usage(Struct, frozen=True, kw_only=True):
    """`prompt_tokens` counts what the model reads, once per prompt; `completion_tokens` sums over choices."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails | UnsetType = UNSET
