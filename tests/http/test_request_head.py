"""The head of a request: limits, ids, and what identifies the caller."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import HeadersTooLarge, InvalidValue, UriTooLong
from tidegate.http.request_head import check_head, choose_request_id, read_head
from tidegate.http.settings import HttpSettings

SETTINGS = HttpSettings(header_bytes=100, uri_bytes=20)


def scope(*headers: tuple[bytes, bytes], **fields: Any) -> dict[str, Any]:
    base = {"method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "client": ("127.0.0.1", 1)}
    return {**base, "headers": list(headers), **fields}


def test_repeated_headers_are_joined_and_names_are_lower_case() -> None:
    head = read_head(scope((b"Accept", b"a"), (b"accept", b"b"), (b"X-A", b"\xff")))
    assert head.headers == {"accept": "a, b", "x-a": "\xff"}


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    head = read_head(scope((b"A", b" a b\t "), (b"B", b" "), (b"C", b"a "), (b"C", b""), (b"D", b"\xa0")))
    assert head.headers == {"a": "a b", "b": "", "c": "a, ", "d": "\xa0"}


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 5)),
        (("::1", "5"), ("::1", 5)),
        (["h", 5], ("h", 5)),
        (None, None),
        (("", ""), None),
        (("unix", None), None),
    ],
)
def test_the_peer_is_an_address_and_a_port_or_nothing(client: Any, peer: Any) -> None:
    assert read_head(scope(client=client)).peer == peer


@pytest.mark.parametrize(
    ("value", "length"), [(b"0", 0), (b"12", 12), (b"-1", None), (b"+1", None), (b"x", None), (b"1, 1", None)]
)
def test_the_declared_length_is_a_plain_number_or_nothing(value: bytes, length: int | None) -> None:
    assert read_head(scope((b"content-length", value))).content_length == length


def test_a_body_is_expected_only_when_one_is_declared() -> None:
    assert not read_head(scope()).has_body
    assert not read_head(scope((b"content-length", b"0"))).has_body
    assert read_head(scope((b"content-length", b"1"))).has_body
    assert read_head(scope((b"transfer-encoding", b"chunked"))).has_body


def test_headers_up_to_the_limit_are_taken_and_one_byte_more_is_not() -> None:
    fits = read_head(scope((b"a", b"b" * 95)))
    check_head(fits, SETTINGS)
    with pytest.raises(HeadersTooLarge) as caught:
        check_head(read_head(scope((b"a", b"b" * 96))), SETTINGS)
    limit = caught.value.limit
    assert limit is not None
    assert (limit.name, limit.value, limit.actual) == ("header_bytes", 100, 101)


def test_path_and_query_share_one_limit() -> None:
    check_head(read_head(scope(raw_path=b"/" + b"a" * 9, query_string=b"q" * 9)), SETTINGS)
    with pytest.raises(UriTooLong) as caught:
        check_head(read_head(scope(raw_path=b"/" + b"a" * 9, query_string=b"q" * 10)), SETTINGS)
    limit = caught.value.limit
    assert limit is not None
    assert (limit.name, limit.value, limit.actual) == ("uri_bytes", 20, 21)


def test_two_hosts_are_refused() -> None:
    with pytest.raises(InvalidValue):
        check_head(read_head(scope((b"host", b"a"), (b"Host", b"b"))), SETTINGS)


@pytest.mark.parametrize("given_id", ["a", "A-Z.0_9", "x" * 128])
def test_a_well_formed_id_is_echoed(given_id: str) -> None:  # ERR-3
    assert choose_request_id(read_head(scope((b"x-request-id", given_id.encode()))), b"\0" * 24) == given_id


@pytest.mark.parametrize("given_id", ["", "x" * 129, "a b", "a\nb", "a:80", "é", "a/b", "a\r\nSet-Cookie: x", "ok\n"])
def test_any_other_id_is_replaced_by_a_minted_one(given_id: str) -> None:  # SEC-19 ERR-3
    head = read_head(scope((b"x-request-id", given_id.encode("latin-1"))))
    assert choose_request_id(head, bytes(24)) == "req_" + "0" * 24


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), max_size=8), st.binary(max_size=40))
def test_no_head_makes_reading_raise(headers: list[tuple[bytes, bytes]], path: bytes) -> None:
    head = read_head(scope(*headers, raw_path=path))
    assert isinstance(choose_request_id(head, bytes(24)), str)


CODING, LENGTH = (b"transfer-encoding", b"chunked"), (b"content-length", b"2")


@pytest.mark.parametrize(
    ("headers", "version", "is_doubtful"),
    [
        ((), "1.1", False),
        ((), "1.0", False),
        ((), "1", False),
        ((LENGTH,), "1.0", False),
        ((CODING,), "1.1", False),
        (((b"transfer-encoding", b" Chunked\t"),), "1.1", False),
        (((b"content-length", b" 2 "),), "1.1", False),
        ((CODING, LENGTH), "1.1", True),
        ((LENGTH, CODING), "1.1", True),
        ((CODING, CODING), "1.1", True),
        ((LENGTH, LENGTH), "1.1", True),
        (((b"transfer-encoding", b"gzip, chunked"),), "1.1", True),
        (((b"transfer-encoding", b"identity"),), "1.1", True),
        (((b"transfer-encoding", b""),), "1.1", True),
        (((b"content-length", b"+2"),), "1.1", True),
        (((b"content-length", b""),), "1.1", True),
        ((CODING,), "1.0", True),
        ((CODING,), "1", True),
        ((), "0.9", True),
        ((), "2.0", True),
    ],
)
def test_framing_that_others_may_read_differently_is_refused(
    headers: Any, version: str, is_doubtful: bool
) -> None:  # SLOW-6
    head = read_head(scope(*headers, http_version=version))
    assert head.is_framing_doubtful is is_doubtful
    if is_doubtful:
        with pytest.raises(InvalidValue):
            check_head(head, HttpSettings())
    else:
        check_head(head, HttpSettings())


def test_the_method_is_kept_as_it_was_spelled() -> None:
    assert read_head(scope(method="get")).method == "get"
