"""Headers that ask for something are honoured, or refused by name; never dropped."""

import pytest

from tidegate.errors import InvalidValue
from tidegate.serving.header_rules import HeaderWishes, priority_of, read_wishes

MOST_MS = 2**53 - 1
NOT_NUMBERS = ["", "-", "1.0", "1e1", "+1", "--1", "one", "٣", "1" * 5000, "1 0", "0x10", "NaN"]


def test_headers_that_ask_for_nothing_ask_for_nothing() -> None:
    given = {"x-request-id": "a", "traceparent": "00-1-2-01", "user-agent": "x", "x-stainless-lang": "python"}
    assert read_wishes(given) == HeaderWishes()


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-100", -100), ("100", 100), (" 7 ", 7), ("-0", 0)])
def test_a_priority_is_an_integer_in_its_range(text: str, value: int) -> None:
    assert priority_of({"x-priority": text}) == read_wishes({"x-priority": text}).priority == value


@pytest.mark.parametrize("text", [*NOT_NUMBERS, "101", "-101"])
def test_any_other_priority_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        priority_of({"x-priority": text})
    assert caught.value.param == "x-priority"
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("2000", 2000), (" 5 ", 5), ("007", 7), (str(MOST_MS), MOST_MS)])
def test_a_deadline_is_a_number_of_milliseconds(text: str, value: int) -> None:
    assert read_wishes({"x-deadline-ms": text}) == HeaderWishes(deadline_ms=value)
    assert read_wishes({"x-first-token-deadline-ms": text}) == HeaderWishes(first_token_deadline_ms=value)


@pytest.mark.parametrize("name", ["x-deadline-ms", "x-first-token-deadline-ms"])
@pytest.mark.parametrize("text", [*NOT_NUMBERS, "0", "-1", str(MOST_MS + 1)])
def test_any_other_deadline_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_wishes({name: text})
    assert caught.value.param == name
    assert len(caught.value.message) < 200
