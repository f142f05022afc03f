"""POST /v1/classify: which of several labels fits a text."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tidegate.contract.bounds import NonEmptyText
from tidegate.contract.reading import Input, ReadingRequest, ReadUsage


class ClassifyRequest(ReadingRequest, frozen=True, kw_only=True):
    """`labels` is an extension, for models that generate: the words to choose from, as they would continue the text.

    `use_activation`: false gives the model's raw numbers as `probs`; otherwise they are probabilities.
    """

    input: Input
    labels: Annotated[list[NonEmptyText], Meta(min_length=1)] | None = None
    use_activation: bool | None = None


class Classification(Struct, frozen=True, kw_only=True):
    """`probs` are in the order of the answer's `labels`; `label` is the one with the greatest."""

    index: int
    label: str
    probs: list[float]
    num_classes: int


class ClassificationList(Struct, frozen=True, kw_only=True):
    """One entry for each input, in order."""

    id: str
    object: Literal["list"] = "list"
    created: int
    model: str
    labels: list[str]
    data: list[Classification]
    usage: ReadUsage
