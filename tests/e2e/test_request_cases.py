"""The `request` cases from public fault reports, over HTTP. Sources: tests/data/cases."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.case_body import CaseWords, case_body
from harness.keys import add_key
from harness.raw_http import Answer, request
from harness.real_model import serve_bundled_model
from harness.request_expectations import EXPECTATIONS, Outcome, check_any_answer
from harness.server_thread import ServerThread
from harness.server_view import read_metrics

CASES = Path(__file__).parent.parent / "data" / "cases" / "cases.jsonl"
CHAT = "/v1/chat/completions"

RESPONSES = "the Responses API"
CONSTRAINTS = "structured output"
WAITING = {
    **dict.fromkeys(("C183-2", "C184-1", "C186-2", "C186-4"), RESPONSES),
    **dict.fromkeys(("C119-7",), CONSTRAINTS),
}
"""What concerns features that are not served yet, by case."""
ELSEWHERE = {"C175-1": "serving_reading/test_reading_driver.py"}
"""What needs an engine at fault, by case, and the test that plays it."""
TOKENS_MATTER = {"stop strings", "templates", "logprobs", "completions/tokenize"}
ALSO_REAL = {"C150-2", "C153-1", "C155-2", "C156-3", "C158-1", "C158-3", "C187-1"}
HARNESS_KEYS = {"alive_after", "policy", "parallel", "status_each", "distinct_ids", "sequence"}


def _cases() -> Iterator[dict[str, Any]]:
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] == "request":
            yield case


ALL_CASES = list(_cases())
KEYED = [case for case in ALL_CASES if "auth" in case["input"]]
"""Against a server that has keys."""
SERVED = [case for case in ALL_CASES if case["id"] not in WAITING.keys() | ELSEWHERE.keys() and case not in KEYED]
REAL = [case for case in SERVED if case["area"] in TOKENS_MATTER or case["id"] in ALSO_REAL]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with ServerThread("simulated", server__state_dir=str(tmp_path_factory.mktemp("state"))) as running:
        yield running


@pytest.fixture(scope="module")
def real() -> Iterator[ServerThread]:
    with serve_bundled_model() as running:
        yield running


def test_every_case_is_either_played_or_waits_for_a_named_feature() -> None:
    assert len(ALL_CASES) == 81
    assert {case["id"] for case in ALL_CASES} >= set(WAITING)
    assert len(SERVED) + len(KEYED) + len(WAITING) + len(ELSEWHERE) == len(ALL_CASES)
    for name, file in ELSEWHERE.items():
        assert name in (Path(__file__).parent.parent / file).read_text("utf-8")


def test_every_expectation_of_a_played_case_is_checked() -> None:
    assert {name for case in SERVED for name in case["expect"]} <= set(EXPECTATIONS) | HARNESS_KEYS


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    state = tmp_path_factory.mktemp("keys")
    add_key(state, "somebody")
    with ServerThread("simulated", server__state_dir=str(state)) as running:
        yield running


@pytest.mark.parametrize("case", KEYED, ids=[case["id"] for case in KEYED])
def test_case_where_keys_are_needed(keyed: ServerThread, case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    body = case_body(given, CaseWords("simulated", 1, list))
    headers = None if given["auth"] is None else {"Authorization": given["auth"]}
    answer = request(keyed.port, given["method"], given["endpoint"], body, headers)
    assert answer.status in expect.get("status_in", [expect.get("status")])
    assert answer.status >= 400
    code = expect.get("error_code_if_401") or expect["error"]["code"]
    assert answer.status != 401 or answer.json()["error"]["code"] == code
    assert isinstance(answer.json()["error"], dict)


@pytest.mark.parametrize("case", SERVED, ids=[case["id"] for case in SERVED])
def test_case(simulated: ServerThread, case: dict[str, Any]) -> None:
    _play(simulated, case)


@pytest.mark.model
@pytest.mark.parametrize("case", REAL, ids=[case["id"] for case in REAL])
def test_case_with_the_bundled_model(real: ServerThread, case: dict[str, Any]) -> None:
    _play(real, case)


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f000001", "localhost", "[::1]", "2130706433"])
def test_no_address_of_an_image_is_ever_connected_to(simulated: ServerThread, host: str) -> None:
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    with socket.create_server(("::1" if host == "[::1]" else "127.0.0.1", 0), family=family) as listener:
        listener.setblocking(False)
        url = f"http://{host}:{listener.getsockname()[1]}/x.png"
        parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
        answer = request(simulated.port, "POST", CHAT, _chat(simulated, [{"role": "user", "content": parts}]))
        assert answer.status == 422
        assert answer.json()["error"]["param"] == "messages[0].content[1]"
        assert url not in answer.body.decode()
        with pytest.raises(BlockingIOError):
            listener.accept()


def _chat(server: ServerThread, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": server.model, "messages": messages, "max_tokens": 4}


def _play(server: ServerThread, case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    assert set(given) <= {"endpoint", "method", "body", "raw", "headers"}
    body = case_body(given, _words(server))
    if "parallel" in expect:
        _check_parallel(server, given, body, expect)
        return
    if "sequence" in expect:
        _check_sequence(server, given, expect["sequence"])
        return
    outcome = _ask(server, given, body)
    check_any_answer(outcome)
    for name, value in expect.items():
        if name not in HARNESS_KEYS:
            EXPECTATIONS[name](outcome, value)
    if expect.get("alive_after"):
        assert request(server.port, "POST", CHAT, _chat(server, [{"role": "user", "content": "hi"}])).status == 200
    assert server.baseline().num_live == 0


def _words(server: ServerThread) -> CaseWords:
    def tokens_of(text: str) -> list[int]:
        tokens: list[int] = request(server.port, "POST", "/v1/tokenize", {"text": text}).json()["tokens"]
        return tokens

    card = request(server.port, "GET", "/v1/models").json()["data"][0]
    return CaseWords(server.model, card["max_model_len"] + 1, tokens_of)


def _ask(server: ServerThread, given: dict[str, Any], body: bytes | None) -> Outcome:
    start = time.monotonic()
    answer = request(server.port, given["method"], given["endpoint"], body, given.get("headers"))
    return Outcome(answer, time.monotonic() - start)


def _check_parallel(server: ServerThread, given: dict[str, Any], body: bytes | None, expect: dict[str, Any]) -> None:
    def ask(_: int) -> Answer:
        return request(server.port, given["method"], given["endpoint"], body, given["headers"])

    with ThreadPoolExecutor(expect["parallel"]) as pool:
        answers = list(pool.map(ask, range(expect["parallel"])))
    assert [answer.status for answer in answers] == [expect["status_each"]] * len(answers)
    assert {answer.headers["x-request-id"] for answer in answers} == {given["headers"]["X-Request-Id"]}
    assert len({answer.json()["id"] for answer in answers}) == len(answers)


def _check_sequence(server: ServerThread, given: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """One request, then further ones with its body or another; the engine's runs are counted over all of them."""

    def ask(**changes: Any) -> Answer:
        body = case_body({**given, "body": {**given["body"], **changes}}, _words(server))
        return request(server.port, given["method"], given["endpoint"], body, given["headers"])

    before = read_metrics(server.admin_port)
    first = ask()
    assert first.status == 200
    for step in steps:
        answer = ask() if step.get("same_body") else ask(messages=[{"role": "user", "content": "something else"}])
        assert answer.status in step.get("status_in", [step.get("status")])
        assert (answer.body == first.body) is bool(step.get("same_response"))
        num_runs = read_metrics(server.admin_port).since(before, "request_success_total")
        assert num_runs == step["engine_runs_total"]
