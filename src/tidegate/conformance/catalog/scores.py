"""Scores of pairs, rankings and classes: form, order, agreement, and what must be refused."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.checks.invalid_value import names_fault
from tidegate.conformance.checks.scores import (
    has_classes,
    has_scores,
    is_ranked,
    pairs_agree,
    ranks_as_scored,
    returns_documents,
    tells_reading,
)
from tidegate.conformance.probing.capability import Capability

_QUERY = "Why is the sea salty?"
_TEXTS = ("Rivers carry salt into the sea.", "A recipe for bread with rye.", "The sea is salty since rivers are.")
_LABELS = (" good", " bad", " so so")
_FIELDS: dict[str, dict[str, Any]] = {
    "score": {"text_1": _QUERY, "text_2": list(_TEXTS)},
    "rerank": {"query": _QUERY, "documents": list(_TEXTS)},
    "classify": {"input": ["The film was", "My day was"], "labels": list(_LABELS)},
}
_NEEDS = {"score": Capability.SCORES, "rerank": Capability.RERANK, "classify": Capability.LABELS}
_DATA, _BREAKS = Severity.WRONG_DATA, Severity.BREAKS_CLIENTS


def _ask(route: str, name: str = "it", **fields: Any) -> Ask:
    return Ask(name=name, path=f"/{route}", body={"model": "{model}", **_FIELDS[route], **fields})


def _case(
    name: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], *expects: Expect, severity: Severity = _DATA
) -> Case:
    needs = dict.fromkeys(_NEEDS[str(ask.path)[1:]] for ask in asks)
    return Case(
        id=f"scores.{name}",
        title=title,
        why=why,
        clauses=(f"tidegate:reading.{clause}",),
        severity=severity,
        profile=Profile.TIDEGATE,
        needs=(*needs, Capability.CONTRACT),
        asks=asks,
        expects=expects,
    )


def _refused(name: str, title: str, route: str, param: str, code: str = "invalid_value", **fields: Any) -> Case:
    body = {"model": "{model}", **_FIELDS[route], **fields}
    return _case(
        f"refuses_{name}",
        title,
        "A score of nothing is stored, and decides what somebody reads.",
        "faults",
        (Ask(path=f"/{route}", body={key: value for key, value in body.items() if value is not ...}),),
        expect(names_fault, code=code, param=param),
        severity=Severity.NUISANCE,
    )


CASES: tuple[Case, ...] = (
    _case(
        "one_with_each",
        "One text is scored with each of the others, in order",
        "Scores are stored under the wrong pair.",
        "score",
        (_ask("score"),),
        expect(has_scores, count=3),
        severity=_BREAKS,
    ),
    _case(
        "pairs",
        "Two lists make pairs, and each pair has the score that it has alone",
        "Scores are stored under the wrong pair.",
        "score",
        (
            _ask("score", "both", text_1=[_QUERY, _TEXTS[0]], text_2=[_TEXTS[1], _TEXTS[2]]),
            _ask("score", "first", text_2=_TEXTS[1]),
            _ask("score", "second", text_1=_TEXTS[0], text_2=_TEXTS[2]),
        ),
        expect(pairs_agree, "both", "first", "second"),
    ),
    _case(
        "usage",
        "`usage` tells what was read",
        "Bills are made from it.",
        "usage",
        (_ask("score", "score"), _ask("rerank", "rerank"), _ask("classify", "classify")),
        expect(tells_reading, "score"),
        expect(tells_reading, "rerank"),
        expect(tells_reading, "classify"),
        severity=Severity.WRONG_BILL,
    ),
    _case(
        "ranking",
        "A ranking has every document once, the most relevant first",
        "The best is shown last.",
        "rerank",
        (_ask("rerank"),),
        expect(is_ranked, count=3, num_documents=3),
        severity=_BREAKS,
    ),
    _case(
        "ranking_is_by_score",
        "A document's relevance is the query's score with it",
        "Results of two routes cannot be compared.",
        "rerank",
        (_ask("rerank", "ranking"), _ask("score", "scored")),
        expect(ranks_as_scored, "ranking", "scored"),
    ),
    _case(
        "top_n",
        "`top_n` keeps the best",
        "Pages have more results than they have room for.",
        "rerank",
        (_ask("rerank", top_n=2),),
        expect(is_ranked, count=2, num_documents=3),
    ),
    _case(
        "documents",
        "`return_documents` brings each document's text, however it was given",
        "Texts are shown beside the wrong score.",
        "rerank",
        (_ask("rerank", documents=[_TEXTS[0], {"text": _TEXTS[1]}, _TEXTS[2]], return_documents=True),),
        expect(returns_documents, texts=_TEXTS),
    ),
    _case(
        "labels",
        "Labels have probabilities that add up to 1, and the likeliest is named",
        "A decision is made that the numbers do not say.",
        "classify",
        (_ask("classify"),),
        expect(has_classes, labels=_LABELS, count=2),
    ),
    _refused("lengths", "Lists of different lengths are refused", "score", "text_2", text_1=["a", "b"]),
    _refused("empty_text", "An empty text is refused by its place", "score", "text_2[1]", text_2=["a", ""]),
    _refused(
        "empty_document", "An empty document is refused by its place", "rerank", "documents[1]", documents=["a", ""]
    ),
    _refused("no_documents", "A ranking of nothing is refused", "rerank", "documents", documents=[]),
    _refused("no_query", "A ranking without query is refused", "rerank", "query", "missing_field", query=...),
    _refused("top_0", "The best none are refused", "rerank", "top_n", top_n=0),
    _refused(
        "same_labels", "A label that is given twice is refused by its place", "classify", "labels[1]", labels=["a", "a"]
    ),
)
