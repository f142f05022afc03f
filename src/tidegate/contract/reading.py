"""What the requests share whose texts are read and not answered: embeddings, scores, rankings, classes."""

from typing import Annotated

from msgspec import Meta, Struct

from tidegate.contract.bounds import Label, Milliseconds, NonEmptyText, Priority
from tidegate.contract.usage import PromptTokensDetails

Input = str | list[int | str | list[int]]
"""One text, one list of token ids, or a list of either; the rules tell them apart."""
Texts = str | Annotated[list[str], Meta(min_length=1)]


class ReadingRequest(Struct, frozen=True, kw_only=True):
    """Base of these requests: the model, who asks, and how the server is to treat it. Null means absent."""

    model: NonEmptyText
    user: Label | None = None
    priority: Priority | None = None
    deadline_ms: Milliseconds | None = None
    first_token_deadline_ms: Milliseconds | None = None


class ReadUsage(Struct, frozen=True, kw_only=True):
    """Tokens that the model read. Nothing is generated, so both counts are one number."""

    prompt_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
