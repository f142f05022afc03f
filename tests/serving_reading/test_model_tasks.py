"""Which model serves which route, by which method, and what is said where one cannot."""

from dataclasses import dataclass

import pytest

from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo, PoolingMode
from tidegate.serving.model_tasks import (
    CHAT,
    CLASSIFY,
    COMPLETIONS,
    EMBEDDINGS,
    REASONS,
    RERANK,
    SCORE,
    Method,
    classify_method,
    score_method,
    unserved_reason,
)


def info(pooling: PoolingInfo | None, *, generates: bool) -> ModelInfo:
    return ModelInfo(10, 64, (), 4, 8, 16, "w", "b", generates=generates, pooling=pooling)


def pooled(mode: PoolingMode, *labels: str) -> PoolingInfo:
    return PoolingInfo(mode, 8, 64, labels)


@dataclass(frozen=True)
class Row:
    info: ModelInfo
    served: set[str]
    scores_by: Method | None
    classifies_by: Method | None


WRITING = {CHAT, COMPLETIONS}
ROWS = {
    "writes only": Row(
        info(None, generates=True), WRITING | {SCORE, RERANK, CLASSIFY}, Method.LIKELIHOOD, Method.LIKELIHOOD
    ),
    "writes and embeds": Row(
        info(pooled(PoolingMode.LAST), generates=True), set(REASONS), Method.LIKELIHOOD, Method.LIKELIHOOD
    ),
    **{
        f"embeds by {mode.value}": Row(
            info(pooled(mode), generates=False), {EMBEDDINGS, SCORE, RERANK}, Method.COSINE, None
        )
        for mode in (PoolingMode.MEAN, PoolingMode.CLS, PoolingMode.LAST)
    },
    "ranks": Row(
        info(pooled(PoolingMode.RANK, "LABEL_0"), generates=False),
        {SCORE, RERANK, CLASSIFY},
        Method.HEAD,
        Method.HEAD,
    ),
    "classifies": Row(info(pooled(PoolingMode.RANK, "a", "b"), generates=False), {CLASSIFY}, None, Method.HEAD),
    "writes and classifies": Row(
        info(pooled(PoolingMode.RANK, "a", "b"), generates=True), WRITING | {CLASSIFY}, None, Method.HEAD
    ),
    "nothing": Row(info(None, generates=False), set(), None, None),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_kind_of_model_serves_what_the_table_says(name: str) -> None:
    row = ROWS[name]
    assert {path for path in REASONS if unserved_reason(path, row.info) is None} == row.served
    assert (score_method(row.info), classify_method(row.info)) == (row.scores_by, row.classifies_by)


def test_every_refusal_has_words_and_other_routes_need_no_model() -> None:
    reasons = {unserved_reason(path, row.info) for row in ROWS.values() for path in REASONS} - {None}
    assert len(reasons) == 5
    assert all("the served" in str(reason) for reason in reasons)
    assert unserved_reason("/v1/tokenize", ROWS["nothing"].info) is None
