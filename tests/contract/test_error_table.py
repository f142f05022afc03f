"""Every leaf of the error tree has one row, every row is used, and the wire form is bounded."""

import json

import pytest

from tidegate import errors
from tidegate.contract.error_table import ERROR_TABLE, Retry, error_answer, row_of


def leaves(cls: type[errors.ServeError]) -> set[type[errors.ServeError]]:
    below = cls.__subclasses__()
    return set().union(*(leaves(sub) for sub in below)) if below else {cls}


LEAVES = sorted(leaves(errors.ServeError), key=lambda cls: cls.__name__)


def make(cls: type[errors.ServeError]) -> errors.ServeError:
    return errors.MethodNotAllowed("m", allow=("GET",)) if cls is errors.MethodNotAllowed else cls("m")


def test_every_leaf_has_a_row_and_every_row_is_a_leaf() -> None:
    assert set(ERROR_TABLE) == set(LEAVES)


def test_no_two_leaves_share_a_code() -> None:
    codes = [row.code for row in ERROR_TABLE.values()]
    assert len(codes) == len(set(codes))


# From the table of the contract's section 3: who must act, status, type, codes, advice.
PROMISED = [
    (400, "invalid_request_error", "invalid_json invalid_value missing_field unknown_parameter", "false"),
    (400, "invalid_request_error", "context_length_exceeded invalid_template_input", "false"),
    (400, "invalid_request_error", "invalid_schema unsupported_schema grammar_too_complex", "false"),
    (422, "invalid_request_error", "unsupported_parameter", "false"),
    (401, "authentication_error", "invalid_api_key", "false"),
    (403, "permission_error", "model_not_allowed route_not_allowed", "false"),
    (404, "invalid_request_error", "model_not_found route_not_found", "false"),
    (405, "invalid_request_error", "method_not_allowed", "false"),
    (408, "invalid_request_error", "slow_request", "false"),
    (413, "invalid_request_error", "body_too_large", "false"),
    (414, "invalid_request_error", "uri_too_long", "false"),
    (415, "invalid_request_error", "unsupported_media_type", "false"),
    (431, "invalid_request_error", "headers_too_large", "false"),
    (409, "idempotency_error", "idempotency_key_in_use", "true"),
    (422, "idempotency_error", "idempotency_key_reuse", "false"),
    (429, "rate_limit_error", "queue_full rate_limit_exceeded", "true"),
    (503, "overloaded_error", "no_capacity engine_unavailable server_draining", "true"),
    (504, "timeout_error", "deadline_exceeded deadline_unreachable", "false"),
    (502, "server_error", "engine_lost engine_refused", "true"),
    (500, "server_error", "internal_error", "false"),
]
EXPECTED = {code: (status, kind, advice) for status, kind, codes, advice in PROMISED for code in codes.split()}


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_a_leaf_is_answered_as_the_contract_says(cls: type[errors.ServeError]) -> None:  # ERR-2
    answer = error_answer(make(cls))
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"], dict(answer.headers)["X-Should-Retry"]) == EXPECTED[error["code"]]
    assert answer.code == error["code"]
    assert set(error) == {"message", "type", "param", "code"}
    assert ("Retry-After" in dict(answer.headers)) is issubclass(cls, errors.CapacityFault)


def test_every_promised_code_has_a_row() -> None:
    assert set(EXPECTED) == {row.code for row in ERROR_TABLE.values()}


@pytest.mark.parametrize("cls", [errors.EngineLost, errors.EngineRefused])
def test_a_lost_engine_is_worth_a_retry_only_where_nothing_was_sent(cls: type[errors.ServeError]) -> None:
    assert dict(error_answer(cls("m"), nothing_sent=True).headers)["X-Should-Retry"] == "true"
    assert dict(error_answer(cls("m"), nothing_sent=False).headers)["X-Should-Retry"] == "false"


def test_only_capacity_is_advised_to_come_back_later() -> None:
    later = {cls for cls, row in ERROR_TABLE.items() if row.retry is Retry.LATER}
    assert later == leaves(errors.CapacityFault)


@pytest.mark.parametrize(("given", "shown"), [(-5, "1"), (0, "1"), (1, "1"), (7, "7"), (120, "120"), (9999, "120")])
def test_retry_after_is_between_1_and_120_seconds(given: int, shown: str) -> None:
    assert dict(error_answer(errors.NoCapacity("m", retry_after_s=given)).headers)["Retry-After"] == shown


@pytest.mark.parametrize("status", [429, 503])
def test_the_status_of_a_full_queue_is_a_setting(status: int) -> None:
    limit = errors.LimitFact("queue_depth", 8, 9, scope="server")
    answer = error_answer(errors.QueueFull("m", limit=limit), queue_full_status=status)
    assert answer.status == status
    assert json.loads(answer.body)["error"]["limit"] == {
        "name": "queue_depth",
        "value": 8,
        "actual": 9,
        "scope": "server",
    }


def test_the_setting_for_a_full_queue_moves_no_other_status() -> None:
    assert error_answer(errors.InvalidApiKey("m"), queue_full_status=503).status == 401


def test_a_method_that_is_not_allowed_names_those_that_are() -> None:
    answer = error_answer(errors.MethodNotAllowed("m", allow=("GET", "HEAD")))
    assert dict(answer.headers)["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("error", [ValueError("/etc/secret"), KeyError(3), errors.InternalError("key 0x7f")])
def test_a_bug_of_ours_shows_nothing_of_itself(error: Exception) -> None:  # ERR-4
    answer = error_answer(error)
    assert answer.status == 500
    assert json.loads(answer.body) == {
        "error": {
            "message": "the server failed to carry out this request",
            "type": "server_error",
            "param": None,
            "code": "internal_error",
        }
    }


def test_a_new_subclass_of_a_leaf_takes_the_row_of_the_leaf() -> None:
    parent = ERROR_TABLE[errors.InvalidValue]
    narrower = type("Narrower", (errors.InvalidValue,), {})
    try:
        assert row_of(narrower("m")) is parent
    finally:
        del narrower


@pytest.mark.parametrize("text", ["x" * 100_000, "é" * 5_000, "😀" * 3_000, "\ud800" * 3000])
def test_a_message_is_bounded_and_always_encodable(text: str) -> None:
    answer = error_answer(errors.InvalidValue(text, param=text))
    error = json.loads(answer.body)["error"]
    assert len(error["message"].encode()) <= 2048
    assert len(error["param"].encode()) <= 256
    assert len(answer.body) < 8192


def test_an_error_body_is_one_line() -> None:
    answer = error_answer(errors.InvalidValue("a\nb\u2028c\u0085d", param="x"))
    assert len(answer.body.decode().splitlines()) == 1
