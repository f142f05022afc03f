"""Every field of the requests whose texts are only read, and what becomes of it. As `request_rules.py`.

What needs the model (how long a vector is, whether there is a head) is checked where the call is prepared.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tidegate.contract.bounds import over_limit
from tidegate.contract.classify import ClassifyRequest
from tidegate.contract.embeddings import EmbeddingRequest
from tidegate.contract.reading import Texts
from tidegate.contract.score import RerankRequest, ScoreRequest
from tidegate.errors import InvalidValue
from tidegate.serving.field_rule import FieldRule, acts, apply_rules, no_effect
from tidegate.serving.prompt_rules import count_prompts
from tidegate.serving.request_policy import RequestPolicy

_NOTHING = "an empty text gives the model nothing to read"


def texts_of(texts: Texts) -> list[str]:
    """Returns one text, or a list of them, as a list."""
    return [texts] if isinstance(texts, str) else texts


def pairs_of(request: ScoreRequest) -> list[tuple[str, str]]:
    """Returns the pairs of a checked request: one text goes with each of the others."""
    first, second = texts_of(request.text_1), texts_of(request.text_2)
    if len(first) == 1:
        first = first * len(second)
    return list(zip(first, second, strict=True))


def documents_of(request: RerankRequest) -> list[str]:
    """Returns the texts of the documents."""
    return [document if isinstance(document, str) else document.text for document in request.documents]


def _check_input(request: EmbeddingRequest | ClassifyRequest, policy: RequestPolicy) -> None:
    actual = count_prompts(request.input)
    if actual > policy.limits.inputs:
        raise over_limit("input", "inputs", value=policy.limits.inputs, actual=actual)


def _check_labels(request: ClassifyRequest, policy: RequestPolicy) -> None:
    labels = request.labels or []
    if len(labels) > policy.limits.labels:
        raise over_limit("labels", "labels", value=policy.limits.labels, actual=len(labels))
    seen: set[str] = set()
    for index, label in enumerate(labels):
        if label in seen:
            raise InvalidValue(f"labels[{index}]: given twice", param=f"labels[{index}]")
        seen.add(label)
    num_read = count_prompts(request.input) * len(labels)
    if num_read > policy.limits.inputs:
        raise over_limit("labels", "inputs", value=policy.limits.inputs, actual=num_read)


def _check_texts(param: str, texts: list[str], policy: RequestPolicy, *, is_list: bool = True) -> None:
    if len(texts) > policy.limits.inputs:
        raise over_limit(param, "inputs", value=policy.limits.inputs, actual=len(texts))
    for index, text in enumerate(texts):
        if not text:
            place = f"{param}[{index}]" if is_list else param
            raise InvalidValue(f"{place}: {_NOTHING}", param=place)


def _check_first(request: ScoreRequest, policy: RequestPolicy) -> None:
    _check_texts("text_1", texts_of(request.text_1), policy, is_list=not isinstance(request.text_1, str))


def _check_second(request: ScoreRequest, policy: RequestPolicy) -> None:
    second = texts_of(request.text_2)
    _check_texts("text_2", second, policy, is_list=not isinstance(request.text_2, str))
    num_first = len(texts_of(request.text_1))
    if num_first not in (1, len(second)):
        message = f"text_2: has {len(second)} texts for the {num_first} of text_1; one goes with all, or as many"
        raise InvalidValue(message, param="text_2")


def _check_query(request: RerankRequest, policy: RequestPolicy) -> None:
    _check_texts("query", [request.query], policy, is_list=False)


def _check_documents(request: RerankRequest, policy: RequestPolicy) -> None:
    _check_texts("documents", documents_of(request), policy)


_EVERYWHERE: dict[str, FieldRule[Struct]] = {
    "model": acts(),
    "user": no_effect(),
    "priority": acts(),
    "deadline_ms": acts(),
    "first_token_deadline_ms": acts(),
}

EMBEDDING_RULES: dict[str, FieldRule[EmbeddingRequest]] = {
    **_EVERYWHERE,
    "input": acts(_check_input),
    "encoding_format": acts(),
    "dimensions": acts(),
    "normalize": acts(),
}

SCORE_RULES: dict[str, FieldRule[ScoreRequest]] = {
    **_EVERYWHERE,
    "text_1": acts(_check_first),
    "text_2": acts(_check_second),
    "use_activation": acts(),
}

RERANK_RULES: dict[str, FieldRule[RerankRequest]] = {
    **_EVERYWHERE,
    "query": acts(_check_query),
    "documents": acts(_check_documents),
    "top_n": acts(),
    "return_documents": acts(),
    "use_activation": acts(),
}

CLASSIFY_RULES: dict[str, FieldRule[ClassifyRequest]] = {
    **_EVERYWHERE,
    "input": acts(_check_input),
    "labels": acts(_check_labels),
    "use_activation": acts(),
}

READING_RULES: Mapping[type[Struct], Mapping[str, FieldRule[Any]]] = {
    EmbeddingRequest: EMBEDDING_RULES,
    ScoreRequest: SCORE_RULES,
    RerankRequest: RERANK_RULES,
    ClassifyRequest: CLASSIFY_RULES,
}


def check_reading(request: Struct, policy: RequestPolicy) -> None:
    """Raises the first InvalidRequest that the fields of `request` deserve."""
    apply_rules(READING_RULES[type(request)], request, policy)
