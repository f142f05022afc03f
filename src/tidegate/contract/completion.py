"""POST /v1/completions: the request, and the answer, which has one shape streamed or not."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tidegate.contract.bounds import BestOf, CompletionLogprobCount
from tidegate.contract.generation import GenerationRequest
from tidegate.contract.logprobs import CompletionLogprobs, PromptLogprobs
from tidegate.contract.usage import Usage


class CompletionRequest(GenerationRequest, frozen=True, kw_only=True):
    """`prompt` is one text, one list of token ids, or a list of either; the rules tell them apart."""

    prompt: str | list[int | str | list[int]]
    best_of: BestOf | None = None
    echo: bool | None = None
    logprobs: CompletionLogprobCount | None = None
    suffix: str | None = None


class CompletionChoice(Struct, frozen=True, kw_only=True):
    """Choice `j` of prompt `i` has index `i * n + j`. In a stream `finish_reason` is null until the last."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: str | int | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class Completion(Struct, frozen=True, kw_only=True):
    """A whole answer, or one chunk. `usage` is absent on chunks, or null, as on chat chunks."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    system_fingerprint: str | UnsetType = UNSET
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET
