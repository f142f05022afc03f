"""Where a remote engine is."""

import pytest

from tidegate.engines.remote.endpoint import UnusableUrl, parse_endpoint

USABLE = {
    "http://10.0.0.5:8000": (False, "10.0.0.5", 8000, ""),
    "http://engine": (False, "engine", 80, ""),
    "https://engine.example/": (True, "engine.example", 443, ""),
    "http://[::1]:9000/vllm/": (False, "::1", 9000, "/vllm"),
}


@pytest.mark.parametrize("url", USABLE)
def test_an_address_says_how_host_port_and_path(url: str) -> None:
    one = parse_endpoint(url)
    assert (one.is_tls, one.host, one.port, one.base_path) == USABLE[url]


UNUSABLE = [
    "",
    "10.0.0.5:8000",
    "ftp://engine",
    "http://",
    "http://engine:port",
    "http://engine:99999",
    "http://user:secret@engine",
    "http://engine/?key=1",
    "http://engine/#x",
    "http://engine/a b",
    "http://engine/a\r\nHost: other",
    "http://ünicode/",
]


@pytest.mark.parametrize("url", UNUSABLE)
def test_another_address_is_refused_with_its_fault(url: str) -> None:
    with pytest.raises(UnusableUrl):
        parse_endpoint(url)


@pytest.mark.parametrize("key", ["", "a b", "key\r\nX: 1", "schlüssel"])
def test_a_key_that_could_change_the_head_is_refused(key: str) -> None:
    with pytest.raises(UnusableUrl, match="API key"):
        parse_endpoint("http://engine", key)


def test_a_head_names_the_host_the_key_and_the_length() -> None:
    head = parse_endpoint("http://[::1]:9000/vllm/", "s3cret").head("POST", "/generate", 12)
    assert head == (
        b"POST /vllm/generate HTTP/1.1\r\nHost: [::1]:9000\r\nUser-Agent: tidegate\r\nAuthorization: Bearer s3cret\r\n"
        b"Content-Type: application/json\r\nContent-Length: 12\r\n\r\n"
    )
    assert b"Content" not in parse_endpoint("http://engine").head("GET", "/health", None)


def test_what_people_see_has_no_key() -> None:
    assert parse_endpoint("http://[::1]:9000/vllm/", "s3cret").url == "http://[::1]:9000/vllm"
