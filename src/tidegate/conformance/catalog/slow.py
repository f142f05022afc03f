"""Clients that read or write slowly: they get all, and nobody waits for them."""

from typing import Any

from tidegate.conformance.ask import Ask, Leaving, Manner
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.load_asks import SPARE_S, back_ask, long_body, probe_ask, rest_ask
from tidegate.conformance.checks.load import is_back_to, is_no_slower_than_beside
from tidegate.conformance.checks.same_content import has_exact_text, is_same_to_slow_reader
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.whole_answer import is_answered_or_timed_out, is_whole_answer
from tidegate.conformance.probing.capability import Capability

_LOST = "A client on a bad line gets an answer with holes, and takes it for the whole."
_SCRIPT = {"pieces": ["776f726420", "c3a9"], "repeat": 24}
_LONG_TEXT = "0123456789abcdef" * 64
_LONG_REPEAT = 600
_LONG_SCRIPT = {"pieces": [_LONG_TEXT.encode().hex()], "repeat": _LONG_REPEAT}
"""600 KiB: more than sockets and our limit of unsent bytes hold."""
_ENDLESS_SCRIPT = {"pieces": [(4 * _LONG_TEXT).encode().hex()], "repeat": 5000, "delays_s": [0.003]}
"""As much in the first half second; read by nobody, its end is still seconds away when its reader leaves."""


def _reader(what: str, title: str, manner: Manner, *, is_stream: bool = True) -> Case:
    """A case of two fast readers and a slow one, one after the other, of the same answer."""
    body = chat_body(max_tokens=48) | ({"stream": True} if is_stream else {})
    return Case(
        id=f"slow.{what}",
        title=title,
        why=_LOST,
        clauses=("openai:http.framing",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.CHAT, *((Capability.STREAMS,) if is_stream else ())),
        asks=(
            Ask(name="fast", body=body, script=_SCRIPT),
            Ask(name="again", wave=1, body=body, script=_SCRIPT),
            Ask(name="slow", wave=2, body=body, script=_SCRIPT, manner=manner),
        ),
        expects=(expect(is_whole_answer, "slow"), expect(is_same_to_slow_reader, "fast", "again", "slow")),
        turn=Turn.ALONE,
        tries=2,
    )


READERS: tuple[Case, ...] = (
    _reader(
        "pausing_reader",
        "A reader that pauses in the stream gets every character",
        Manner(pause_after_events=3, pause_s=1.5),
    ),
    _reader(
        "tiny_buffer",
        "A reader with a tiny receive buffer gets every character",
        Manner(receive_buffer_bytes=2048, read_bytes=256, read_pause_s=0.005),
    ),
    _reader(
        "tiny_reads",
        "A reader that takes a few bytes at a time gets every character",
        Manner(read_bytes=61, read_pause_s=0.002),
    ),
    _reader(
        "whole_by_bits",
        "A whole answer that is read in bits is the same",
        Manner(receive_buffer_bytes=2048, read_bytes=37, read_pause_s=0.005),
        is_stream=False,
    ),
)


def _writer(what: str, title: str, manner: Manner) -> Case:
    return Case(
        id=f"slow.{what}",
        title=title,
        why="Clients on bad lines cannot send requests at all.",
        clauses=("openai:http.framing",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body(), manner=manner),),
        expects=(expect(is_answered_or_timed_out),),
    )


WRITERS: tuple[Case, ...] = (
    _writer(
        "sent_by_bytes",
        "A request that comes byte by byte is answered",
        Manner(send_bytes=1, send_pause_s=0.001),
    ),
    _writer(
        "sent_slowly",
        "A request that is sent over two seconds is answered, or refused with 408",
        Manner(send_bytes=20, send_pause_s=0.12),
    ),
)

_READING = Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=3.0)
_STUCK = Manner(receive_buffer_bytes=2048, pause_after_events=1, pause_s=30.0, timeout_s=5.0)


def _beside(what: str, title: str, copies: int, **fields: Any) -> Case:
    """A case of a request beside clients that read, and two beside as many that do not."""
    stream: dict[str, Any] = {
        "copies": copies,
        "body": long_body(max_tokens=900, stream=True),
        "script": _LONG_SCRIPT,
    }
    bounds = {"spare_s": SPARE_S, "times": 2.0}
    settings: dict[str, Any] = {
        "asks": (
            probe_ask("quiet", 0),
            Ask(name="reading", wave=1, manner=_READING, **stream),
            probe_ask("beside_readers", 1, delay_s=0.6),
            Ask(name="stuck", wave=2, manner=_STUCK, **stream),
            probe_ask("beside", 2, delay_s=0.6),
            probe_ask("later", 2, delay_s=1.2),
        ),
        "expects": (
            expect(is_no_slower_than_beside, "quiet", "beside_readers", "beside", **bounds),
            expect(is_no_slower_than_beside, "quiet", "beside_readers", "later", **bounds),
        ),
    }
    return Case(
        id=f"slow.{what}",
        title=title,
        why="One client that does not read stops the service for all.",
        clauses=("openai:http.concurrency",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT, Capability.STREAMS),
        turn=Turn.ALONE,
        tries=2,
        **(settings | fields),
    )


STUCK: tuple[Case, ...] = (
    _beside("one_stuck_reader", "Others are served while a client does not read its stream", 1),
    _beside("many_stuck_readers", "Others are served while eight clients do not read their streams", 8),
)

EXACT: tuple[Case, ...] = (
    Case(
        id="slow.large_stream",
        title="A reader that falls 600 KiB behind gets all of it, in order",
        why=_LOST,
        clauses=("tidegate:streaming.backpressure",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT, Capability.STREAMS, Capability.SCRIPT),
        asks=(
            Ask(
                body=long_body(max_tokens=_LONG_REPEAT, stream=True),
                script=_LONG_SCRIPT,
                manner=Manner(receive_buffer_bytes=4096, pause_after_events=2, pause_s=1.0),
            ),
        ),
        expects=(expect(has_status, allowed=(200,)), expect(has_exact_text, text=_LONG_TEXT, repeat=_LONG_REPEAT)),
    ),
    Case(
        id="slow.stuck_reader_leaves",
        title="What a stuck reader held is free when it leaves",
        why="Blocks of the cache that nobody frees make the server refuse work.",
        clauses=("tidegate:cancel.baseline",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT, Capability.STREAMS, Capability.METRICS, Capability.ADMIN),
        asks=(
            rest_ask(),
            Ask(
                name="stuck",
                wave=1,
                copies=4,
                body=long_body(max_tokens=900, stream=True),
                script=_ENDLESS_SCRIPT,
                manner=Manner(receive_buffer_bytes=2048, pause_after_events=1, pause_s=30.0, timeout_s=2.0),
            ),
            back_ask(2, within_s=5.0, with_memory=True),
        ),
        expects=(expect(is_back_to, "before", "after", with_memory=True),),
        turn=Turn.ALONE,
    ),
)

CASES: tuple[Case, ...] = (*READERS, *WRITERS, *STUCK, *EXACT)
