"""POST /v1/embeddings: the request, and the answer."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tidegate.contract.bounds import MAX_COUNT
from tidegate.contract.reading import Input, ReadingRequest, ReadUsage


class EmbeddingRequest(ReadingRequest, frozen=True, kw_only=True):
    """`normalize` is an extension: false gives vectors as the model made them; otherwise their length is 1."""

    input: Input
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1, le=MAX_COUNT)] | None = None
    normalize: bool | None = None


class Embedding(Struct, frozen=True, kw_only=True):
    """`embedding`: numbers that are exact 32-bit floats; or, as `base64`, the same floats, little-endian."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingList(Struct, frozen=True, kw_only=True):
    """One row for each input, in the order of the inputs."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: ReadUsage
