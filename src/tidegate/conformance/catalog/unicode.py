"""Text beyond ASCII, on its way in and out."""

import json
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import both_ways, completions_ask, generated, pieces, streamed
from tidegate.conformance.checks.same_answer import is_like_repeated
from tidegate.conformance.checks.stops import says
from tidegate.conformance.checks.unicode_text import has_whole_characters, is_echoed, says_in_json
from tidegate.conformance.checks.usage import counts_same_prompt
from tidegate.conformance.probing.capability import Capability

_FORCED = (Capability.CHAT, Capability.STREAMS, Capability.JSON_SCHEMA)
_SCRIPTED = (Capability.CHAT, Capability.STREAMS, Capability.SCRIPT)
_ECHO = (Capability.COMPLETIONS, Capability.ECHO)

_TEXTS: tuple[tuple[str, str, str], ...] = (
    ("emoji", "Emoji, joined and of two code units", "\U0001f600 \U0001f469\u200d\U0001f680 \U0001f1ef\U0001f1f5"),
    ("combining", "Letters with combining marks, not composed", "e\u0301 o\u0308 n\u0303"),
    ("ideographs", "Chinese, Japanese and Korean characters", "\u65e5\u672c\u8a9e \ud55c\uae00 \U0002070e"),
    ("right_to_left", "Hebrew and Arabic with marks of direction", "\u05e9\u05dc\u05d5\u05dd\u200f \u0645\u0631\u062d"),
)
_PROMPT = "\u65e5 \U0001f600 e\u0301 \u05e9\u200f\u0645 \xdf \u20ac \u0915\u094d\u0937"
_CONTROLS = 'tab\t quote" slash\\ bell\x07 escape\x1b delete\x7f end'
_NUL = "before\x00behind"
_QUESTION = 'What does "gr\xfcn \U0001f7e2" mean?'
_SPLIT = pieces("gr", b"\xc3", b"\xbcn ", b"\xf0", b"\x9f\x9f", b"\xa2", " ", b"\xe6\x97\xa5\xe6", b"\x9c\xac", "!")
_SPLIT_TEXT = "gr\xfcn \U0001f7e2 \u65e5\u672c!"


def _forced(text: str) -> dict[str, Any]:
    """Returns a request whose schema allows one answer: {"t": text}."""
    schema = {
        "type": "object",
        "properties": {"t": {"type": "string", "enum": [text]}},
        "required": ["t"],
        "additionalProperties": False,
    }
    return chat_body(
        "Answer with the JSON object that the schema allows.",
        max_tokens=96,
        response_format={"type": "json_schema", "json_schema": {"name": "t", "strict": True, "schema": schema}},
    )


def _bytewise(text: str) -> dict[str, Any]:
    data = json.dumps({"t": text}, ensure_ascii=False).encode()
    return pieces(*(data[i : i + 1] for i in range(len(data))))


def _forced_case(name: str, what: str, text: str) -> Case:
    return Case(
        id=f"unicode.{name}",
        title=f"{what} come back code point for code point, whole and streamed",
        why="Names and words of most of the world's languages are damaged.",
        clauses=("openai:text.unicode",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=both_ways(_forced(text), script=_bytewise(text), is_refusable=True),
        expects=(
            *generated("whole", "it"),
            expect(says_in_json, "whole", text=text),
            expect(says_in_json, text=text),
            expect(has_whole_characters),
        ),
        tries=2,
    )


CASES: tuple[Case, ...] = (
    *(_forced_case(*row) for row in _TEXTS),
    Case(
        id="unicode.split_tokens",
        title="Characters that lie over several tokens come whole, in one delta each",
        why="The screen shows question marks wherever the vocabulary cuts a character.",
        clauses=("openai:text.unicode", "openai:stream.as_whole"),
        severity=Severity.WRONG_DATA,
        needs=_SCRIPTED,
        asks=both_ways(chat_body(), script=_SPLIT),
        expects=(
            *generated("whole", "it"),
            expect(says, "whole", text=_SPLIT_TEXT, finish="stop"),
            expect(says, text=_SPLIT_TEXT, finish="stop"),
            expect(has_whole_characters),
        ),
    ),
    Case(
        id="unicode.cut_at_end",
        title="A character that the token limit cuts is one U+FFFD, whole and streamed",
        why="The last characters of cut answers depend on how they are read.",
        clauses=("tidegate:text.cut_character",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_SCRIPTED,
        asks=both_ways(chat_body(max_tokens=5), script=_SPLIT),
        expects=(
            *generated("whole", "it"),
            expect(says, "whole", text="gr\xfcn \ufffd", finish="length"),
            expect(says, text="gr\xfcn \ufffd", finish="length"),
        ),
    ),
    Case(
        id="unicode.not_utf8",
        title="Bytes of a model that are no UTF-8 are one U+FFFD each, and harm nothing beside them",
        why="One bad token ends the stream, or makes the answer unreadable as JSON.",
        clauses=("openai:text.unicode",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=_SCRIPTED,
        asks=both_ways(chat_body(), script=pieces("a", b"\xff", "b", b"\xc0", "c")),
        expects=(
            *generated("whole", "it"),
            expect(says, "whole", text="a\ufffdb\ufffdc", finish="stop"),
            expect(says, text="a\ufffdb\ufffdc", finish="stop"),
        ),
    ),
    Case(
        id="unicode.prompt",
        title="An echoed prompt is the prompt, code point for code point, whole and streamed",
        why="The model reads other words than those that were sent.",
        clauses=("openai:text.unicode", "openai:completions.echo"),
        severity=Severity.WRONG_DATA,
        needs=(*_ECHO, Capability.STREAMED_ECHO),
        asks=(
            completions_ask(completion_body(_PROMPT, max_tokens=2, echo=True), name="whole", is_refusable=True),
            completions_ask(streamed(completion_body(_PROMPT, max_tokens=2, echo=True)), is_refusable=True),
        ),
        expects=(*generated("whole", "it"), expect(is_echoed, "whole"), expect(is_echoed)),
    ),
    Case(
        id="unicode.controls",
        title="Quotes, backslashes and control characters come back as they were sent, in JSON that is valid",
        why="One unescaped character makes the whole answer unreadable.",
        clauses=("openai:text.unicode", "openai:completions.echo"),
        severity=Severity.BREAKS_CLIENTS,
        needs=_ECHO,
        asks=(completions_ask(completion_body(_CONTROLS, max_tokens=2, echo=True), is_refusable=True),),
        expects=(*generated(), expect(is_echoed)),
    ),
    Case(
        id="unicode.nul",
        title="Text behind a NUL is not lost, whole or streamed",
        why="What stands behind the NUL is neither read nor answered, and nobody is told.",
        clauses=("openai:text.unicode", "openai:completions.echo"),
        severity=Severity.WRONG_DATA,
        needs=(*_ECHO, Capability.STREAMED_ECHO),
        asks=(
            completions_ask(completion_body(_NUL, max_tokens=2, echo=True), name="whole", is_refusable=True),
            completions_ask(streamed(completion_body(_NUL, max_tokens=2, echo=True)), is_refusable=True),
        ),
        expects=(*generated("whole", "it"), expect(is_echoed, "whole"), expect(is_echoed)),
    ),
    Case(
        id="unicode.escaped_request",
        title="Characters may be sent as they are or escaped: the prompt is the same",
        why="Clients of some languages escape all that is not ASCII, and are answered otherwise.",
        clauses=("openai:text.unicode",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.CHAT,),
        asks=(
            Ask(name="plain", body=chat_body(_QUESTION)),
            Ask(name="again", body=chat_body(_QUESTION), wave=1),
            Ask(raw=json.dumps(chat_body(_QUESTION)).encode(), wave=2),
        ),
        expects=(
            *generated("plain", "again", "it"),
            expect(counts_same_prompt, "plain", "it"),
            expect(is_like_repeated, "plain", "again", "it"),
        ),
        turn=Turn.ALONE,
        tries=2,
    ),
)
