"""POST /v1/score and /v1/rerank: how well texts go together."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate.contract.bounds import PositiveCount
from tidegate.contract.reading import ReadingRequest, ReadUsage, Texts


class ScoreRequest(ReadingRequest, frozen=True, kw_only=True):
    """One text with each of several, or as many pairs as both lists have entries.

    `use_activation`: false gives the model's raw numbers, where it has any; otherwise scores are probabilities.
    """

    text_1: Texts
    text_2: Texts
    use_activation: bool | None = None


class Score(Struct, frozen=True, kw_only=True):
    object: Literal["score"] = "score"
    index: int
    score: float


class ScoreList(Struct, frozen=True, kw_only=True):
    """One score for each pair, in order. `created` is in seconds since the Unix epoch."""

    id: str
    object: Literal["list"] = "list"
    created: int
    model: str
    data: list[Score]
    usage: ReadUsage


class DocumentBody(Struct, frozen=True, kw_only=True):
    """A document as an object; what else it holds is not read."""

    text: str


class RerankRequest(ReadingRequest, frozen=True, kw_only=True):
    """`top_n`: how many of the best to return; absent: all. `use_activation` as in a score request."""

    query: str
    documents: Annotated[list[str | DocumentBody], Meta(min_length=1)]
    top_n: PositiveCount | None = None
    return_documents: bool | None = None
    use_activation: bool | None = None


class RankedDocument(Struct, frozen=True, kw_only=True):
    text: str


class RankedResult(Struct, frozen=True, kw_only=True):
    """`index` is the document's place in the request."""

    index: int
    relevance_score: float
    document: RankedDocument | UnsetType = UNSET


class Ranking(Struct, frozen=True, kw_only=True):
    """The most relevant first; of equals the one that was given first."""

    id: str
    object: Literal["list"] = "list"
    created: int
    model: str
    results: list[RankedResult]
    usage: ReadUsage
