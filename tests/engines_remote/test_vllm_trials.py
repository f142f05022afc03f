"""What vLLM's answers to single questions mean, whatever page they stand on."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.remote_scene import FACTS
from tidegate.engines.remote.ask import Answer, Ask, EngineAway, EngineUnfit
from tidegate.engines.remote.dialect import Introduction
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.engines.vllm_http.vllm_wire import GENERATE_PATH

CARD = {"data": [{"id": "m", "root": "/m", "max_model_len": 4096}]}
METRICS = """# HELP process_start_time_seconds Start time.
process_start_time_seconds 1.5e+09
vllm:cache_config_info{block_size="32",enable_prefix_caching="False",num_gpu_blocks="0"} 1.0
"""

Trial = Callable[[dict[str, Any]], Answer]


class Script(Ask):
    """Answers of a page each; `trial` answers the requests for one token, by their body."""

    def __init__(self, trial: Trial, metrics: str = METRICS) -> None:
        self._trial = trial
        self._pages = {"/health": b"", "/v1/models": json.dumps(CARD).encode(), "/metrics": metrics.encode()}

    async def _exchange(self, method: str, path: str, body: bytes | None) -> Answer:
        if path == GENERATE_PATH:
            return self._trial(json.loads(body or b"{}"))
        return Answer(200, self._pages[path]) if path in self._pages else Answer(404, b"")


def taken(_body: dict[str, Any]) -> Answer:
    return Answer(200, b"{}")


def at(member: str, status: int) -> Trial:
    """Answers the trials that have this member otherwise."""

    def answer(body: dict[str, Any]) -> Answer:
        return Answer(status, b"") if member in body or member in body["sampling_params"] else taken(body)

    return answer


def most(count: int) -> Trial:
    return lambda body: Answer(400 if body["sampling_params"].get("logprobs", 0) > count else 200, b"{}")


def introduce(trial: Trial = taken, metrics: str = METRICS) -> Introduction:
    return asyncio.run(VllmKind(FACTS).introduce(Script(trial, metrics)))


def test_metrics_are_found_wherever_they_stand() -> None:
    told = introduce()
    assert told.recognition.boot == "1.5e+09"
    assert (told.model.block_tokens, told.model.num_blocks, told.model.has_prefix_cache) == (32, 8 * 128, False)
    assert told.model.build == "vllm of unknown version"
    silent = introduce(metrics="")
    assert silent.recognition.boot is None
    assert (silent.model.block_tokens, silent.model.has_prefix_cache) == (16, False)


STATUSES: dict[str, tuple[Trial, type[Exception], str]] = {
    "too many at first": (lambda _body: Answer(429, b""), EngineAway, "takes no request now"),
    "not now at first": (lambda _body: Answer(503, b""), EngineAway, "takes no request now"),
    "a fault at first": (lambda _body: Answer(500, b""), EngineUnfit, "does not generate"),
    "too many later": (at("logprobs", 429), EngineAway, "a trial was answered with status 429"),
    "not now later": (at("priority", 503), EngineAway, "a trial was answered with status 503"),
    "no log-probabilities": (at("logprobs", 400), EngineUnfit, "gives no log-probabilities"),
}


@pytest.mark.parametrize("case", STATUSES.values(), ids=STATUSES)
def test_an_engine_that_is_busy_is_asked_again_and_one_that_cannot_is_not(
    case: tuple[Trial, type[Exception], str],
) -> None:
    trial, error, words = case
    with pytest.raises(error, match=words):
        introduce(trial)


@pytest.mark.parametrize(("most_there", "found"), [(30, 21), (21, 21), (20, 20), (12, 11), (5, 2), (0, 0)])
def test_the_most_alternatives_are_found_by_trying(most_there: int, found: int) -> None:
    dialect: Any = introduce(most(most_there)).dialect
    assert dialect._abilities.limits.max_logprobs == found
