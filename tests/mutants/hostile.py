"""What falls over, or goes along with, what nobody should send."""

import gzip
import re
from collections.abc import Callable

from harness.judged_case import Mutants
from harness.mutant import Answers, Heard, Mutant, Said
from mutants.errors import fails, takes


def _has(pattern: bytes) -> Callable[[Heard], bool]:
    return lambda heard: re.search(pattern, heard.body, re.DOTALL) is not None


def _fails_on(what: str, pattern: bytes) -> Mutant:
    return fails(f"fails on {what}", _has(pattern))


def _takes(what: str, pattern: bytes) -> Mutant:
    return takes(f"takes {what}", _has(pattern))


def _where(name: str, value: str) -> Callable[[Heard], bool]:
    return lambda heard: value in (heard.header(name) or "")


class _StaysDown(Mutant):
    """Falls over once, and does not come up."""

    def __init__(self, what: str, holds: Callable[[Heard], bool]) -> None:
        self.says = f"does not serve after {what}"
        self._holds = holds
        self._is_down = False

    def hear(self, heard: Heard) -> Heard | Said:
        if self._is_down:
            return Said(503, b"{}")
        self._is_down = self._holds(heard)
        return heard


class _ReadsOnce(Mutant):
    says = "takes the first bytes for the whole body"

    def hear(self, heard: Heard) -> Heard | Said:
        return Said(400, b"{}") if heard.num_reads > 2 else heard


def _reads_gzip(heard: Heard) -> Said | None:
    try:
        gzip.decompress(heard.body) if heard.header("content-encoding") else heard.body.decode()
    except (OSError, UnicodeDecodeError):
        return Said(500, b"{}")
    return None


MUTANTS: Mutants = {
    "hostile.deep": (
        _fails_on("deep lists", rb"\[{5000}\]"),
        _fails_on("deep objects", rb'(\{"a":){5000}'),
        _StaysDown("deep lists", _has(rb"\[{5000}")),
    ),
    "hostile.duplicate_names": (_fails_on("a name that stands twice", rb'"max_tokens".*"max_tokens"'),),
    "hostile.lone_surrogate": (
        _fails_on("half of a pair in a message", rb"x \\ud83d y"),
        _fails_on("half of a pair in a name", rb"\\udc00"),
        _fails_on("half of a pair in a stop string", rb'"stop": "\\ud800"'),
    ),
    "hostile.byte_order_mark": (_fails_on("a byte order mark", rb"^\xef\xbb\xbf"),),
    "hostile.other_encoding": (_fails_on("UTF-16", rb"^\xff\xfe\{\x00\""), _fails_on("UTF-32", rb"\x00\x00\x00")),
    "hostile.not_utf8": (
        _takes("bytes that are no text", rb"\xff\xfe"),
        _takes("half a character", rb"\xe2\x82"),
        _fails_on("surrogates in UTF-8", rb"\xed\xa0\x80"),
    ),
    "hostile.trailing": (_takes("what follows", rb"\}\{\}$"), _takes("what follows a space", rb"\} x$")),
    "hostile.lenient_json": (
        _takes("a comma at the end", rb",\}$"),
        _takes("single quotes", rb"'user'"),
        _takes("comments", rb"/\* x \*/"),
        _takes("line breaks in texts", rb"a\nb"),
    ),
    "hostile.nul": (_fails_on("an escaped NUL", rb"\\u0000"), _fails_on("a NUL", rb"^\x00")),
    "hostile.spaces": (_fails_on("a mebibyte of spaces", rb"^ {100000}"), _StaysDown("spaces", _has(rb"^ {9999}"))),
    "hostile.many_members": (_fails_on("many members", rb'"z49999"'),),
    "hostile.huge_integers": (
        _takes("an integer of thousands of digits", rb"9{4000}"),
        _fails_on("an integer of thousands of digits", rb"9{4000}"),
        _fails_on("an exponent without end", rb"1e400"),
    ),
    "hostile.huge_limit": (_fails_on("more tokens than will ever be", rb"9{30}"),),
    "hostile.chunked": (
        fails("reads no chunks", lambda heard: heard.header("transfer-encoding") is not None),
        Answers("takes chunks for JSON", lambda heard: Said(400, b"{}") if _has(rb"^\w+\r\n")(heard) else None),
    ),
    "hostile.chunk_extras": (_fails_on("extensions of chunks", rb";a=b"), _fails_on("trailers", rb"X-After")),
    "hostile.bytewise": (_ReadsOnce(),),
    "hostile.expect": (fails("knows no 100-continue", _where("expect", "100-continue")),),
    "hostile.compressed": (Answers("fails on what it cannot unpack", _reads_gzip),),
    "hostile.content_length": (
        takes("reads any length as none", _where("content-length", "many")),
        takes("takes a negative length for none", _where("content-length", "-5")),
        takes("reads lengths as a compiler does", _where("content-length", "0x10")),
        takes("takes the last of two lengths", _where("content-length", "5, 6")),
    ),
    "hostile.short_length": (takes("reads on past the length", _where("content-length", "20")),),
    "hostile.two_lengths": (fails("fails on two lengths", _where("content-length", "3")),),
    "hostile.large_headers": (
        fails("fails on a long header", _where("x-long", "aaa")),
        fails("fails on many headers", lambda heard: len(heard.headers) > 80),
        fails("fails on letters in headers", _where("x-odd", "caf")),
    ),
}
