"""POST /v1/chat/completions: the request, the whole answer, and the chunk of a stream.

In answers UNSET means that the member is absent, and None that it is null. Members are written in field order.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate.contract.bounds import Label, Metadata, PositiveCount, ReasoningEffort, ShortLabel, TopLogprobs
from tidegate.contract.generation import GenerationRequest
from tidegate.contract.logprobs import ChatLogprobs, PromptLogprobs
from tidegate.contract.messages import ChatMessage
from tidegate.contract.tools import FunctionCallChoice, FunctionDefinition, Tool, ToolChoice
from tidegate.contract.usage import Usage


class ChatRequest(GenerationRequest, frozen=True, kw_only=True):
    """OpenAI's fields, then the extensions that concern chat only."""

    # Each has a row in serving/request_rules.py.

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    max_completion_tokens: PositiveCount | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: ReasoningEffort | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    modalities: list[Literal["text", "audio"]] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    moderation: dict[str, Any] | None = None
    prompt_cache_key: Label | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    safety_identifier: ShortLabel | None = None
    functions: list[FunctionDefinition] | None = None
    function_call: FunctionCallChoice | None = None

    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class AnswerFunction(Struct, frozen=True, kw_only=True):
    name: str
    arguments: str


class AnswerToolCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    id: str
    function: AnswerFunction


class AnswerCustom(Struct, frozen=True, kw_only=True):
    name: str
    input: str


class AnswerCustomCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    id: str
    custom: AnswerCustom


class AnswerMessage(Struct, frozen=True, kw_only=True):
    """`function_call` answers a request that was made with the deprecated `functions`."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[AnswerToolCall | AnswerCustomCall] | UnsetType = UNSET
    function_call: AnswerFunction | UnsetType = UNSET


class ChatChoice(Struct, frozen=True, kw_only=True):
    """`stop_reason` is the stop string or the stop token id that matched."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: str
    stop_reason: str | int | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletion(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str | UnsetType = UNSET
    service_tier: str | UnsetType = UNSET
    choices: list[ChatChoice]
    usage: Usage
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class DeltaFunction(Struct, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class DeltaCustom(Struct, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    input: str | UnsetType = UNSET


class DeltaToolCall(Struct, frozen=True, kw_only=True):
    """`id`, `type` and the name come with a call's first delta only; then `function` or `custom`, by the type."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function", "custom"] | UnsetType = UNSET
    function: DeltaFunction | UnsetType = UNSET
    custom: DeltaCustom | UnsetType = UNSET


class Delta(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[DeltaToolCall] | UnsetType = UNSET
    function_call: DeltaFunction | UnsetType = UNSET


class ChatChunkChoice(Struct, frozen=True, kw_only=True):
    """`finish_reason` is null until the choice's last chunk, never absent."""

    index: int
    delta: Delta
    logprobs: ChatLogprobs | UnsetType | None = UNSET
    finish_reason: str | None = None
    stop_reason: str | int | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET


class ChatChunk(Struct, frozen=True, kw_only=True):
    """With `include_usage`, `usage` is null on every chunk but the last; without it, absent."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str | UnsetType = UNSET
    service_tier: str | UnsetType = UNSET
    choices: list[ChatChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET
