"""POST /v1/tokenize and /v1/detokenize, under the names that other servers use for the same."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate.contract.bounds import ReasoningEffort, TokenIdNumber
from tidegate.contract.messages import ChatMessage
from tidegate.contract.tools import Tool


class TokenizeRequest(Struct, frozen=True, kw_only=True):
    """Text, as `prompt` or `text`; or a chat, which is rendered first. Exactly one of the three is given.

    `return_token_strs` asks for `token_strs`, `return_pieces` (or `with_pieces`) for `pieces`.
    """

    model: str | None = None
    prompt: str | None = None
    text: str | None = None
    messages: Annotated[list[ChatMessage], Meta(min_length=1)] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    return_pieces: bool | None = None
    with_pieces: bool | None = None
    tools: list[Tool] | None = None
    reasoning_effort: ReasoningEffort | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class TokenizeResponse(Struct, frozen=True, kw_only=True):
    """`token_strs` holds each token's text, lossy where a token is part of a character; `pieces` its bytes as hex."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | UnsetType = UNSET
    pieces: list[str] | UnsetType = UNSET


class DetokenizeRequest(Struct, frozen=True, kw_only=True):
    model: str | None = None
    tokens: list[TokenIdNumber]


class DetokenizeResponse(Struct, frozen=True, kw_only=True):
    """The same text twice: one name is ours, the other one that of another server."""

    text: str
    prompt: str
