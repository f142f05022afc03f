"""A `curl` line sends what the case sent: read back through a real shell, with a curl that only tells its arguments."""

import subprocess

import pytest

from harness.made_report import make_exchange
from tidegate.conformance.ask import Ask, Derived, Leaving, Manner, Place, Until
from tidegate.conformance.reports.ask_sketch import sketch_curl
from tidegate.conformance.reports.ask_words import describe_ask, describe_manner
from tidegate.conformance.reports.curl_line import MAX_CURL_BODY_BYTES, curl_line
from tidegate.conformance.wire.exchange import Exchange

URL = "http://server:8000/v1/chat/completions"
TELLS = r"""curl() {
  for word in "$@"; do printf '%s\0' "$word"; done
  case "$*" in *"--data-binary @-"*) cat;; esac
}
"""


def run(command: str) -> tuple[list[bytes], bytes]:
    """Returns the arguments that curl gets and what it reads from its input."""
    done = subprocess.run(["sh", "-c", TELLS + command], capture_output=True, check=True, env={"API_KEY": "the key"})
    *words, rest = done.stdout.split(b"\0")
    return words, rest


def request(body: bytes, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} /v1/chat/completions HTTP/1.1", "Host: server:8000", "User-Agent: tidegate-conform", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


BODIES = {
    "json": b'{"a": 1}',
    "quotes": b'{"a": "it\'s $HOME `x` \\\\ \\""}',
    "lines": b'{\n\t"a": 1\n}',
    "a file's name": b"@/etc/passwd",
    "not UTF-8": b"\xff\xfe{}",
    "carriage return": b"a\r\nb",
    "unseen": '{"a": "\u202e\u200b"}'.encode(),
    "words of many scripts": '{"a": "grün 日本 🙂"}'.encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_body_arrives_as_it_was_sent(name: str) -> None:
    words, given = run(curl_line("POST", URL, request(BODIES[name])))
    body = words[words.index(b"--data-binary") + 1]
    assert (given if body == b"@-" else body) == BODIES[name]


def test_the_credential_is_the_shells_and_headers_of_curls_own_are_left_to_it() -> None:
    exchange: Exchange = make_exchange([], {"a": 1})
    words, _ = run(curl_line("POST", URL, exchange.request))
    assert words == [
        b"-sSiN",
        URL.encode(),
        b"-H",
        b"Content-Type: application/json",
        b"-H",
        b"Authorization: Bearer the key",
        b"--data-binary",
        b'{"a": 1}',
    ]


ODD = {
    "another host": (("Host: other",), b"Host: other"),
    "a wrong length": (("Content-Length: 99",), b"Content-Length: 99"),
    "an empty header": (("X-Empty:",), b"X-Empty;"),
    "quotes": (("X-It: it's",), b"X-It: it's"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_headers_are_told(name: str) -> None:
    headers, expected = ODD[name]
    words, _ = run(curl_line("POST", URL, request(b"{}", *headers)))
    assert expected in words


def test_headers_that_were_left_out_are_taken_from_curl() -> None:
    words, _ = run(curl_line("POST", URL, b"POST / HTTP/1.1\r\n\r\n{}"))
    assert {b"Host:", b"Content-Type:"} <= set(words)


def test_methods_are_named_where_curl_would_take_another() -> None:
    assert "-X" not in curl_line("GET", URL, request(b"", method="GET"))
    assert "-X DELETE" in curl_line("DELETE", URL, request(b"", method="DELETE"))
    assert "-X POST" in curl_line("POST", URL, request(b""))


def test_a_large_body_is_named_and_not_spelled() -> None:
    line = curl_line("POST", URL, request(b"x" * (MAX_CURL_BODY_BYTES + 1)))
    assert line.startswith("# the body of 8193 bytes is to be put into the file request-body\n")
    assert run(line)[0][-1] == b"@request-body"


MANNERS = {
    "sends at most 1 bytes in a write; waits 0.1 s between two writes": Manner(send_bytes=1, send_pause_s=0.1),
    "goes away when half of the body is sent": Manner(leaving=Leaving.HALF_REQUEST),
    "goes away after 1 event; resets the connection": Manner(leaving=Leaving.AFTER_EVENTS, with_reset=True),
    "goes away after 2 s": Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=2),
    "goes away when the others are answered, after 3 s at the latest": Manner(
        leaving=Leaving.AFTER_OTHERS, leave_after_s=3
    ),
    "reads nothing for 3 s after 2 events": Manner(pause_after_events=2, pause_s=3),
    "reads at most 9 bytes at once; waits 1 s between two reads; has a receive buffer of 4 bytes": Manner(
        read_bytes=9, read_pause_s=1, receive_buffer_bytes=4
    ),
    "waits at most 5 s": Manner(timeout_s=5),
    "": Manner(),
}


@pytest.mark.parametrize("told", MANNERS)
def test_manners_are_told_in_words(told: str) -> None:
    assert "; ".join(describe_manner(MANNERS[told])) == told


@pytest.mark.parametrize("leaving", Leaving, ids=lambda leaving: leaving.name)
def test_every_way_of_leaving_has_words(leaving: Leaving) -> None:
    assert describe_manner(Manner(leaving=leaving))[0].startswith("goes away ")


def make_id(exchange: Exchange) -> str:
    return exchange.marker


def test_asks_tell_copies_delays_and_repetition() -> None:
    ask = Ask(copies=3, delay_s=0.5, last_wave=2, until=Until(make_id, within_s=9))
    assert describe_ask(ask) == [
        "is sent 3 times at once",
        "is sent 0.5 s after the others of its wave",
        "goes on beside what is asked next",
        "is sent again until the answer is right, for at most 9 s",
    ]


def test_an_ask_is_sketched_with_names_for_what_is_not_known_yet() -> None:
    derived = Derived(make_id, ("first",))
    ask = Ask(path=derived, body={"id": derived, "of": ["{model}", derived]}, headers={"X-Id": derived})
    assert sketch_curl(Ask(path="/models", method="GET")) == (
        'curl -sSiN "$BASE_URL"/v1/models -H \'Authorization: Bearer \'"$API_KEY"'
    )
    words, _ = run("BASE_URL=http://here MODEL=tiny\n" + sketch_curl(ask))
    assert words[-1] == b'{"id": "<make_id first>", "of": ["tiny", "<make_id first>"]}'
    assert b"X-Id: <make_id first>" in words
    assert words[1] == b"http://here/v1<make_id first>"
    assert sketch_curl(Ask(path="/x", place=Place.ADMIN, method="GET")).startswith('curl -sSiN "$ADMIN_URL"/x')
    assert sketch_curl(Ask(path="/health?x=1", place=Place.ROOT, method="GET")).startswith(
        "curl -sSiN \"$BASE_URL\"'/health?x=1'"
    )
    words, _ = run("BASE_URL=http://here MODEL=tiny\n" + sketch_curl(Ask(path="/models/{model}", method="GET")))
    assert words[1] == b"http://here/v1/models/tiny"
