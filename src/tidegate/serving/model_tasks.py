"""What the served model can be asked for, and by which method: the one table of routes and kinds of models.

| | writes | embeds | has a head with one output | has a head with several |
|---|---|---|---|---|
| chat, completions | yes | no | no | no |
| embeddings | where its engine pools | yes | no | no |
| score, rerank | likelihood of yes and no | cosine | the head | no |
| classify | likelihood of given labels | no | the head | the head |

A model with a head is asked through its head only. What a model cannot do is refused with the reason given here.
"""

from enum import Enum

from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingMode

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
EMBEDDINGS, SCORE, RERANK, CLASSIFY = "/v1/embeddings", "/v1/score", "/v1/rerank", "/v1/classify"

_ONLY_READS = "the served model generates no text"
_NO_POOLING = "the served engine does not pool hidden states"
_HAS_HEAD = "the served model has a classification head, and no embeddings"
_NO_CLASSES = "the served model has no classification head, and generates no text"
_MANY_CLASSES = "the head of the served model tells classes; it scores no pairs"


class Method(Enum):
    """How pairs are scored, and texts classified. The values are those of `/v1/contract`."""

    HEAD = "head"
    LIKELIHOOD = "likelihood"
    COSINE = "cosine"


def has_head(info: ModelInfo) -> bool:
    """Whether the model answers through a classification head."""
    return info.pooling is not None and info.pooling.mode is PoolingMode.RANK


def generation_reason(info: ModelInfo) -> str | None:
    """Returns why the model writes no text; None where it does."""
    return None if info.generates else _ONLY_READS


def embedding_reason(info: ModelInfo) -> str | None:
    """Returns why there are no embeddings; None where there are."""
    if info.pooling is None:
        return _NO_POOLING
    return _HAS_HEAD if has_head(info) else None


def score_method(info: ModelInfo) -> Method | None:
    """Returns how pairs are scored; None where they are not."""
    if has_head(info):
        return Method.HEAD if info.pooling is not None and len(info.pooling.labels) <= 1 else None
    if info.generates:
        return Method.LIKELIHOOD
    return None if info.pooling is None else Method.COSINE


def score_reason(info: ModelInfo) -> str | None:
    """Returns why no pairs are scored; None where they are."""
    if score_method(info) is not None:
        return None
    return _MANY_CLASSES if has_head(info) else _NO_POOLING


def classify_method(info: ModelInfo) -> Method | None:
    """Returns how texts are classified; None where they are not."""
    if has_head(info):
        return Method.HEAD
    return Method.LIKELIHOOD if info.generates else None


def classify_reason(info: ModelInfo) -> str | None:
    """Returns why no texts are classified; None where they are."""
    return None if classify_method(info) is not None else _NO_CLASSES


REASONS = {
    CHAT: generation_reason,
    COMPLETIONS: generation_reason,
    EMBEDDINGS: embedding_reason,
    SCORE: score_reason,
    RERANK: score_reason,
    CLASSIFY: classify_reason,
}


def unserved_reason(path: str, info: ModelInfo) -> str | None:
    """Returns why the model does not serve a route; None where it does, and for routes that need no model's work."""
    reason = REASONS.get(path)
    return None if reason is None else reason(info)
