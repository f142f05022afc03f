"""Headers that ask for something are honoured or refused, never dropped."""

import pytest

from tidegate.errors import InvalidValue, UnsupportedParameter
from tidegate.serving.header_rules import NOT_SERVED, check_headers, priority_of


@pytest.mark.parametrize("name", sorted(NOT_SERVED))
def test_what_is_not_served_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedParameter) as caught:
        check_headers({"x-request-id": "a", name: "1"})
    assert caught.value.param == name


def test_headers_that_ask_for_nothing_pass() -> None:
    check_headers({"x-request-id": "a", "traceparent": "00-1-2-01", "user-agent": "x", "x-stainless-lang": "python"})


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-100", -100), ("100", 100), (" 7 ", 7), ("-0", 0)])
def test_a_priority_is_an_integer_in_its_range(text: str, value: int) -> None:
    assert priority_of({"x-priority": text}) == value


@pytest.mark.parametrize("text", ["", "-", "101", "-101", "1.0", "1e1", "+1", "--1", "one", "٣", "1" * 5000])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        priority_of({"x-priority": text})
    assert caught.value.param == "x-priority"
    assert len(caught.value.message) < 200


def test_without_the_header_the_priority_is_zero() -> None:
    assert priority_of({}) == 0
