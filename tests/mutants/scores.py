"""What breaks scores, rankings, classes, and embeddings as our own contract has them."""

from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsRequest, EditsValue, Heard, Mutant, on_base
from mutants.answers import says_of_errors
from tidegate.conformance.catalog import embedding_faults, scores


def _edits(says: str, edit: Callable[[dict[str, Any]], Any]) -> Mutant:
    """A mutant that changes the answer's object in place."""

    def apply(value: Any) -> Any:
        edit(value)
        return value

    return on_base("simulated", EditsValue(says, apply))


def _edits_rows(says: str, name: str, edit: Callable[[dict[str, Any]], Any]) -> Mutant:
    return _edits(says, lambda value: [edit(row) for row in value[name]])


def _asks(says: str, **members: Any) -> Mutant:
    """A mutant that reads some members as others; None leaves them out."""

    def apply(body: Any) -> Any:
        return {name: part for name, part in (body | members).items() if part is not None}

    return on_base("simulated", EditsRequest(says, apply))


class _OnlyRanks(Mutant):
    base = "simulated"
    says = "ranks by other numbers than it scores with"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        for row in value.get("results", ()):
            row["relevance_score"] = 0.5 + row["relevance_score"] / 10
        return value


def _swap(value: dict[str, Any]) -> None:
    if len(value["data"]) == 2:
        value["data"] = [row | {"score": 0.9 - 0.5 * row["index"]} for row in value["data"]]


def _other_label(row: dict[str, Any]) -> None:
    place = row["probs"].index(min(row["probs"]))
    row["label"] = (" good", " bad", " so so")[place]


_LOSES_LAST = _edits("loses the last row", lambda value: value["data"].pop())
_FAULTS = (
    on_base("simulated", says_of_errors("names no parameter", param=None)),
    on_base("simulated", says_of_errors("has one code for all errors", code="bad_request")),
)

MUTANTS: Mutants = {
    "scores.one_with_each": (
        _LOSES_LAST,
        _edits("has no object", lambda value: value.pop("object")),
        _edits_rows("numbers every row 0", "data", lambda row: row.update(index=0)),
        _edits_rows("writes logits", "data", lambda row: row.update(score=row["score"] - 7.5)),
        _edits_rows("writes NaN", "data", lambda row: row.update(score=float("nan"))),
    ),
    "scores.pairs": (_edits("scores otherwise in company", _swap),),
    "scores.usage": (
        _edits("tells no usage", lambda value: value.pop("usage")),
        _edits("counts nothing", lambda value: value.update(usage={"prompt_tokens": 0, "total_tokens": 0})),
    ),
    "scores.ranking": (
        _edits_rows("has one index for all", "results", lambda row: row.update(index=1)),
        _edits("leaves one out", lambda value: value["results"].pop()),
        _edits("ranks the best last", lambda value: _rising(value["results"])),
    ),
    "scores.ranking_is_by_score": (_OnlyRanks(),),
    "scores.top_n": (_asks("ignores top_n", top_n=None),),
    "scores.documents": (
        _asks("ignores return_documents", return_documents=None),
        _edits_rows("returns no texts", "results", lambda row: row.update(document={})),
    ),
    "scores.labels": (
        _LOSES_LAST,
        _edits_rows("names another label", "data", _other_label),
        _edits_rows("writes log-likelihoods", "data", lambda row: row.update(probs=[-1.0, -2.0, -3.0])),
    ),
    "embeddings.exact": (_edits("rounds numbers", lambda value: _round(value["data"][0])),),
    "embeddings.length": (_asks("does not normalize", normalize=False),),
    **{case.id: _FAULTS for case in scores.CASES if ".refuses_" in case.id},
    **{case.id: _FAULTS for case in embedding_faults.CASES if ".names_" in case.id},
}


def _rising(results: list[dict[str, Any]]) -> None:
    for position, row in enumerate(results):
        row["relevance_score"] = position / 10


def _round(row: dict[str, Any]) -> None:
    if isinstance(row["embedding"], list):
        row["embedding"] = [round(number, 4) for number in row["embedding"]]
