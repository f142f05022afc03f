"""Bodies and requests that nobody should send: never a failure of the server, never a hang, and it serves on."""

import json

from tidegate.conformance.ask import PLAIN, Ask, Derived, Manner
from tidegate.conformance.case import Case, Expect, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.checks.errors import is_refused
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.sturdiness import is_answered, is_answered_or_closed, is_turned_away
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.wire.body_coding import make_chunks, make_gzip

FAULTY = (400, 422)
_AFTER = Ask(name="after", body=chat_body("x", max_tokens=1), wave=1)
_ALIVE = expect(has_status, "after", allowed=(200,))
_BODY = chat_body("x \u00e9 \U0001f600 \u4e2d", max_tokens=1)
_START = b'{"model": "{model}", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]'
_GOOD = json.dumps(_BODY).encode()


def _case(
    what: str,
    title: str,
    asks: Ask | tuple[Ask, ...],
    expectation: Expect,
    clause: str = "errors.blame",
    why: str = "Whoever can send this can fell the server for everybody.",
) -> Case:
    """`expectation` holds of each of the asks, and the server serves on. No answer may blame the server."""
    sent = asks if isinstance(asks, tuple) else (asks,)
    return Case(
        id=f"hostile.{what}",
        title=title,
        why=why,
        clauses=tuple(dict.fromkeys((f"openai:{clause}", "openai:errors.blame"))),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(*sent, _AFTER),
        expects=(*(expect(expectation.check, ask.name, **expectation.args) for ask in sent), _ALIVE),
    )


def _raw(name: str, raw: bytes) -> Ask:
    return Ask(name=name, raw=raw)


def _chunked(size: int, extension: bytes = b"", trailer: bytes = b"") -> Derived:
    return Derived(make_chunks, (), {"body": _BODY, "size": size, "extension": extension, "trailer": trailer})


_GZIPPED = Derived(make_gzip, (), {"body": _BODY})


def _sent(name: str, raw: bytes | Derived | None = None, manner: Manner = PLAIN, **headers: str | None) -> Ask:
    """Returns a request with other headers; `_` stands for the hyphen of a name."""
    by_name = {key.replace("_", "-"): value for key, value in headers.items()}
    return Ask(name=name, raw=_GOOD if raw is None else raw, headers=by_name, manner=manner)


_ANY = expect(is_answered)
_NO = expect(is_refused, allowed=FAULTY)
_YES = expect(has_status, allowed=(200,))
_REPEATED = "The client is at fault and is told that the server is: it repeats the request, thrice."
_NOT_HEARD = "HTTP libraries send in this way; such clients cannot call at all."

_TEXTS = (
    _case(
        "deep",
        "JSON that nests a hundred thousand levels is refused",
        (
            _raw("lists", _START + b', "zzz": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
            _raw("objects", _START + b', "zzz": ' + b'{"a":' * 50_000 + b"0" + b"}" * 50_000 + b"}"),
            _raw("open", b"[" * 100_000),
        ),
        _ANY,
    ),
    _case(
        "duplicate_names",
        "A name that stands twice does no harm",
        (_raw("field", _START + b', "max_tokens": 1}'), _raw("message", _START + b', "messages": []}')),
        _ANY,
    ),
    _case(
        "lone_surrogate",
        "Half of a surrogate pair is answered or refused",
        (
            _raw("content", _START.replace(b'"x"', rb'"x \ud83d y"') + b"}"),
            _raw("name", _START + rb', "\udc00": 1}'),
            _raw("stop", _START + rb', "stop": "\ud800"}'),
            _raw("model", _START.replace(b"{model}", rb"\ud800") + b"}"),
        ),
        _ANY,
        why=_REPEATED,
    ),
    _case(
        "byte_order_mark",
        "A byte order mark before the body does no harm",
        _raw("mark", b"\xef\xbb\xbf" + _START + b"}"),
        _ANY,
        why=_REPEATED,
    ),
    _case(
        "other_encoding",
        "A body in another encoding than UTF-8 is refused or read, and fails nothing",
        (_raw("utf16", '{"model": "x"}'.encode("utf-16")), _raw("utf32", '{"model": "x"}'.encode("utf-32"))),
        _ANY,
        "json.text",
        _REPEATED,
    ),
    _case(
        "not_utf8",
        "A body that is not UTF-8 is refused",
        (
            _raw("byte", _START.replace(b'"x"', b'"\xff\xfe"') + b"}"),
            _raw("cut_character", _START.replace(b'"x"', b'"\xe2\x82"') + b"}"),
            _raw("surrogate", _START.replace(b'"x"', b'"\xed\xa0\x80"') + b"}"),
        ),
        _NO,
        "json.text",
        "The model reads other text than was sent, and the answer is to that.",
    ),
    _case(
        "trailing",
        "What follows the JSON makes the body invalid",
        (_raw("brace", _START + b"}}"), _raw("second", _START + b"}{}"), _raw("word", _START + b"} x")),
        _NO,
        "json.text",
        "Two readers of one body see two requests.",
    ),
    _case(
        "lenient_json",
        "What only lenient readers take for JSON is refused",
        (
            _raw("comma", _START + b",}"),
            _raw("quotes", _START.replace(b'"user"', b"'user'") + b"}"),
            _raw("comment", _START + b"/* x */}"),
            _raw("line_break", _START.replace(b'"x"', b'"a\nb"') + b"}"),
        ),
        _NO,
        "json.text",
        "Two readers of one body see two requests.",
    ),
    _case(
        "nul",
        "NUL is a character in a text, and no JSON outside of it",
        (_raw("escaped", _START.replace(b'"x"', rb'"a\u0000b"') + b"}"), _raw("bare", b"\x00" * 64)),
        _ANY,
        why=_REPEATED,
    ),
    _case(
        "spaces",
        "A mebibyte of spaces before the JSON is answered",
        _raw("before", b" " * (1 << 20) + _START + b"}"),
        _ANY,
    ),
    _case(
        "many_members",
        "An object of fifty thousand members is answered",
        _raw("members", _START + b", " + b",".join(b'"z%d":0' % number for number in range(50_000)) + b"}"),
        _ANY,
    ),
    _case(
        "huge_integers",
        "Integers that fit no register are refused",
        (
            _raw("choices", _START + b', "n": ' + b"9" * 4000 + b"}"),
            _raw("exponent", _START + b', "n": 1e400}'),
        ),
        _NO,
        "parameters.range",
        _REPEATED,
    ),
    _case(
        "huge_limit",
        "A token limit that fits no register is taken for no limit, or refused",
        _raw(
            "tokens",
            _START.replace(b'"max_tokens": 1', b'"max_tokens": ' + b"9" * 30) + b', "stop": [" ", "a", "e", "o"]}',
        ),
        _ANY,
        why=_REPEATED,
    ),
)

_SENDING = (
    _case(
        "chunked",
        "A body in chunks is the same body",
        (
            _sent("one", _chunked(4096), Transfer_Encoding="chunked", Content_Length=None),
            _sent("small", _chunked(3), Transfer_Encoding="chunked", Content_Length=None),
        ),
        expect(has_status, allowed=(200, 411)),
        "http.coding",
        _NOT_HEARD,
    ),
    _case(
        "chunk_extras",
        "Extensions of chunks and trailers are read over",
        _sent("it", _chunked(16, b";a=b", b"X-After: 1\r\n"), Transfer_Encoding="chunked", Content_Length=None),
        expect(has_status, allowed=(200, 400, 411)),
        "http.coding",
        _NOT_HEARD,
    ),
    _case(
        "bytewise",
        "A request that comes byte by byte is the same request",
        (_sent("it", manner=Manner(send_bytes=1)), _sent("odd", manner=Manner(send_bytes=7, send_pause_s=0.001))),
        _YES,
        "http.coding",
        _NOT_HEARD,
    ),
    _case(
        "expect",
        "Who waits for 100-continue is not left waiting",
        _sent("it", Expect="100-continue"),
        expect(has_status, allowed=(200, 417)),
        "http.expect",
        "curl waits a second before every larger body.",
    ),
    _case(
        "compressed",
        "A compressed body is read, or refused",
        (
            _sent("told", _GZIPPED, Content_Encoding="gzip"),
            _sent("untold", _GZIPPED),
            _sent("unknown", Content_Encoding="zzz"),
        ),
        _ANY,
        why=_REPEATED,
    ),
    _case(
        "content_length",
        "A Content-Length that is no number is refused, or the connection closed",
        (
            _sent("word", Content_Length="many"),
            _sent("negative", Content_Length="-5"),
            _sent("hexadecimal", Content_Length="0x10"),
            _sent("two", Content_Length="5, 6"),
        ),
        expect(is_turned_away),
        "http.length",
        "Two servers on the way see two requests, and one caller gets the other's answer.",
    ),
    _case(
        "short_length",
        "A body ends where its Content-Length says",
        _sent("it", Content_Length="20", Connection="close"),
        expect(is_refused, allowed=FAULTY),
        "http.framing",
        "What follows belongs to the next request.",
    ),
    _case(
        "two_lengths",
        "A body with both kinds of length is answered or closed",
        _sent("it", _chunked(64), Transfer_Encoding="chunked", Content_Length="3"),
        expect(is_answered_or_closed),
        "http.length",
        "Two servers on the way see two requests, and one caller gets the other's answer.",
    ),
    _case(
        "large_headers",
        "Headers of many kilobytes are answered or closed",
        (
            _sent("long", X_Long="a" * 30_000),
            Ask(name="many", raw=_GOOD, headers={f"X-{number}": "a" * 20 for number in range(90)}),
            _sent("odd", X_Odd="caf\u00e9 \u00ff", Cookie="a=b; " * 50),
        ),
        expect(is_answered_or_closed),
    ),
)

CASES: tuple[Case, ...] = (*_TEXTS, *_SENDING)
