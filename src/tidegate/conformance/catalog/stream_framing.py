"""The bytes of a stream: how they are framed, and when they come."""

from tidegate.conformance.ask import Ask, Derived, Manner
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import completions_ask, generated, pieces, streamed
from tidegate.conformance.checks.heartbeat import beats_while_silent, silence_to_script
from tidegate.conformance.checks.prompts import echoes
from tidegate.conformance.checks.same_answer import is_like_repeated
from tidegate.conformance.checks.stream_framing import arrives_over_time, has_stream_headers, is_framed_without
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.wire.sse_reader import Deviation

_STREAMS = (Capability.CHAT, Capability.STREAMS)
_BODY = streamed(chat_body())
_LONG = 48
_SLOW = pieces(*(f" {number}" for number in range(_LONG)), delays_s=[0.02])
_SEPARATORS = "one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1bseven"

_STANDARD: tuple[tuple[str, Deviation, str], ...] = (
    ("utf8", Deviation.NOT_UTF8, "Characters are lost: readers put U+FFFD in their place."),
    ("json", Deviation.NOT_JSON, "The client raises an error at this event, and the rest of the answer is lost."),
    ("whole_events", Deviation.CUT_OFF, "An event without its blank line is dropped, without a word."),
    ("data_only", Deviation.OTHER_FIELD, "An event without data reaches the official client as empty, and it fails."),
)
"""What the event stream standard, or the API's own description, forbids."""

_STRICT: tuple[tuple[str, Deviation, str], ...] = (
    ("no_byte_order_mark", Deviation.BYTE_ORDER_MARK, "Readers that do not know of it miss the first event."),
    ("line_feeds", Deviation.CARRIAGE_RETURN, "Readers that split at line feeds keep the carriage return in the data."),
    ("no_nul", Deviation.NUL, "Readers written in C end the line there."),
    ("one_space", Deviation.NO_SPACE, "Readers that cut off `data: ` lose the first character, or find no data."),
    ("one_line", Deviation.SEVERAL_DATA_LINES, "Readers that take each data line for an event get parts of JSON."),
    ("comments_between", Deviation.COMMENT_INSIDE_EVENT, "Readers that end an event at a comment get part of it."),
    ("comments_alone", Deviation.BLANK_AFTER_COMMENT, "The official client dispatches an empty event and fails."),
    ("no_empty_events", Deviation.EMPTY_EVENT, "Readers that dispatch at every blank line get an empty event."),
)
"""What only lenient readers forgive, and our contract forbids."""


def _framing_case(name: str, deviation: Deviation, why: str, profile: Profile) -> Case:
    is_ours = profile is Profile.TIDEGATE
    return Case(
        id=f"stream.{name}",
        title=f"Of no stream it is true that {deviation.value}",
        why=why,
        clauses=("tidegate:stream.frames" if is_ours else "openai:stream.frames",),
        severity=Severity.NUISANCE if is_ours or deviation is Deviation.OTHER_FIELD else Severity.BREAKS_CLIENTS,
        profile=profile,
        needs=_STREAMS,
        asks=(Ask(body=_BODY),),
        expects=(*generated(), expect(is_framed_without, deviations=(deviation,))),
    )


def _like_plain(case_id: str, title: str, why: str, manner: Manner) -> Case:
    """Returns a case: an exchange in this manner says what two plain ones say."""
    return Case(
        id=case_id,
        title=title,
        why=why,
        clauses=("openai:stream.as_whole", "openai:http.fragmentation"),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=(
            Ask(name="plain", body=_BODY),
            Ask(name="again", body=_BODY, wave=1),
            Ask(body=_BODY, wave=2, manner=manner),
        ),
        expects=(*generated("plain", "again", "it"), expect(is_like_repeated, "plain", "again", "it")),
        turn=Turn.ALONE,
        tries=2,
    )


CASES: tuple[Case, ...] = (
    *(_framing_case(*row, Profile.OPENAI) for row in _STANDARD),
    *(_framing_case(*row, Profile.TIDEGATE) for row in _STRICT),
    Case(
        id="stream.separators_kept",
        title="Text with line separators and control characters is streamed whole",
        why="Servers that write lines of text, and readers that split at every line break of Unicode, cut the JSON.",
        clauses=("openai:stream.frames", "openai:completions.echo"),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.COMPLETIONS, Capability.STREAMS, Capability.STREAMED_ECHO),
        asks=(completions_ask(streamed(completion_body(_SEPARATORS, max_tokens=2, echo=True)), is_refusable=True),),
        expects=(*generated(), expect(is_framed_without, deviations=(Deviation.NOT_JSON,)), expect(echoes)),
    ),
    Case(
        id="stream.separators_escaped",
        title="U+2028, U+2029 and U+0085 are escaped in a stream",
        why="Readers that split at every line break of Unicode, as many do by accident, cut the JSON there.",
        clauses=("tidegate:stream.frames",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(Capability.COMPLETIONS, Capability.STREAMS, Capability.STREAMED_ECHO),
        asks=(completions_ask(streamed(completion_body(_SEPARATORS, max_tokens=2, echo=True))),),
        expects=(*generated(), expect(is_framed_without, deviations=(Deviation.UNESCAPED_LINE_BREAK,)), expect(echoes)),
    ),
    Case(
        id="stream.headers",
        title="A stream tells intermediaries not to hold it back, and has neither a length nor a content coding",
        why="Proxies collect the whole answer before they pass it on.",
        clauses=("tidegate:stream.headers",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=(Ask(body=_BODY),),
        expects=(*generated(), expect(has_stream_headers)),
    ),
    _like_plain(
        "stream.read_bytewise",
        "A stream that is read byte by byte, through the smallest of buffers, says the same",
        "Slow and far clients lose text that fast and near ones get.",
        Manner(read_bytes=1, receive_buffer_bytes=2048),
    ),
    _like_plain(
        "stream.sent_bytewise",
        "A request that comes byte by byte is answered the same",
        "Requests through slow networks and small segments are cut or refused.",
        Manner(send_bytes=1, send_pause_s=0.0005),
    ),
    Case(
        id="stream.over_time",
        title="Text comes while it is generated, not all of it at the end",
        why="The user waits before an empty screen for as long as the whole answer takes.",
        clauses=("openai:stream.over_time",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_STREAMS,
        asks=(
            Ask(name="before", body=streamed(chat_body(max_tokens=1)), script=_SLOW),
            Ask(body=streamed(chat_body(max_tokens=_LONG)), script=_SLOW, wave=1),
            Ask(name="after", body=streamed(chat_body(max_tokens=1)), script=_SLOW, wave=2),
        ),
        expects=(*generated("before", "it", "after"), expect(arrives_over_time, "before", "it", "after")),
    ),
    Case(
        id="stream.heartbeat",
        title="A stream that has nothing to say sends a heartbeat after the time that the contract page tells",
        why="Proxies close connections that are silent for a minute, and the user loses an answer that was on its way.",
        clauses=("tidegate:stream.heartbeat",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(*_STREAMS, Capability.CONTRACT, Capability.SCRIPT),
        asks=(
            Ask(name="page", method="GET", path="/contract"),
            Ask(
                body=_BODY,
                script={
                    "pieces": ["54776f", "20776f726473"],
                    "delays_s": [0, Derived(silence_to_script, ("page",))],
                },
                manner=Manner(timeout_s=60.0),
                wave=1,
            ),
        ),
        expects=(*generated(), expect(beats_while_silent, "page", "it")),
    ),
)
