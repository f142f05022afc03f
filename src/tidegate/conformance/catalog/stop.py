"""Stop strings, cut out of an answer that the server gave before."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Check, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import completions_ask, generated, pieces, streamed
from tidegate.conformance.checks.stops import (
    counts_less,
    counts_through_stop,
    ends_before_stop,
    ends_with_stop,
    finishes_with_stop,
    holds_no_stop,
    is_untouched,
    is_untouched_by_prompt,
    says,
    take_nested_stops,
    take_stop,
    take_stop_list,
    take_unfinished_stop,
    tells_stop_reason,
)
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT,)
_STREAMS = (*_CHAT, Capability.STREAMS)
_MAX = 24
_STOP = Derived(take_stop, ("first",), {"start": 5, "length": 4})
_LONG_STOP = Derived(take_stop, ("first",), {"start": 3, "length": 9})
_UNFINISHED = Derived(take_unfinished_stop, ("first",), {"length": 3})
_LATER_AND_EARLIER = Derived(take_stop_list, ("first",), {"parts": ((12, 3), (5, 3))})
_OVERLAPPING = Derived(take_nested_stops, ("first",))


def _first(**fields: Any) -> Ask:
    return Ask(name="first", body=chat_body(max_tokens=_MAX, **fields))


def _body(stop: Any, **fields: Any) -> dict[str, Any]:
    return chat_body(max_tokens=_MAX, stop=stop, **fields)


def _both(stop: Any) -> tuple[Ask, Ask, Ask]:
    """Returns the first answer, and the stopped one, whole and streamed."""
    return (
        _first(),
        Ask(name="whole", body=_body(stop), wave=1),
        Ask(name="streamed", body=streamed(_body(stop)), wave=1),
    )


def _each_way(check: Check) -> tuple[Expect, ...]:
    """Returns that all three are answered, and that the assertion holds of the stopped ones beside the first."""
    return (*_ANSWERED, *(expect(check, "first", way) for way in ("whole", "streamed")))


_ANSWERED = generated("first", "whole", "streamed")

CASES: tuple[Case, ...] = (
    Case(
        id="stop.excluded",
        title="A stop string is never in the text, whole or streamed",
        why="Markers that an application puts between turns show up on its user's screen.",
        clauses=("openai:stop.excluded",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_both(_STOP),
        expects=(*_ANSWERED, expect(holds_no_stop, "whole"), expect(holds_no_stop, "streamed")),
    ),
    Case(
        id="stop.text_before",
        title="All text before a stop string is returned, and nothing of the stop or after it",
        why="Answers lose their last characters, or end with half a marker.",
        clauses=("openai:stop.excluded",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_both(_STOP),
        expects=_each_way(ends_before_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.finish_reason",
        title="What a stop string ends finishes with stop",
        why="Clients that ask for more after `length` ask for text behind the stop.",
        clauses=("openai:stop.finish",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_both(_STOP),
        expects=_each_way(finishes_with_stop),
        tries=2,
    ),
    Case(
        id="stop.several",
        title="Of several stop strings the one that comes first ends the answer, whatever their order in the list",
        why="The answer runs on to a later stop, over one that should have ended it.",
        clauses=("openai:stop.excluded", "openai:stop.forms"),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_both(_LATER_AND_EARLIER),
        expects=_each_way(ends_before_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.completes_first",
        title="Of two stops that overlap the one that is completed first wins",
        why="Which of two ends is taken depends on how the text fell into tokens.",
        clauses=("tidegate:stop.first",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=_both(_OVERLAPPING),
        expects=_each_way(ends_before_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.over_tokens",
        title="A stop string that lies over several tokens is found",
        why="Only stops that happen to be one token work, and which are that nobody knows.",
        clauses=("openai:stop.excluded",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_both(_LONG_STOP),
        expects=_each_way(ends_before_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.unfinished",
        title="Text that begins like a stop string and does not become one is returned, at the very end too",
        why="Servers that hold text back until they know lose it when the answer ends before they do.",
        clauses=("openai:stop.excluded", "openai:stream.as_whole", "tidegate:stop.held_back"),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=(
            _first(),
            Ask(name="again", body=chat_body(max_tokens=_MAX), wave=1),
            Ask(name="whole", body=_body(_UNFINISHED), wave=2),
            Ask(name="streamed", body=streamed(_body(_UNFINISHED)), wave=3),
        ),
        expects=(
            *generated("first", "again", "whole", "streamed"),
            expect(is_untouched, "first", "again", "whole"),
            expect(is_untouched, "first", "again", "streamed"),
        ),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.string_or_list",
        title="A stop may be a text or a list of one text",
        why="A text that is read as a list of its characters ends the answer at the first of them.",
        clauses=("openai:stop.forms", "openai:stop.excluded"),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            _first(),
            Ask(name="text", body=_body(_STOP), wave=1),
            Ask(name="list", body=_body([_STOP]), wave=1),
        ),
        expects=(
            *generated("first", "text", "list"),
            expect(ends_before_stop, "first", "text"),
            expect(ends_before_stop, "first", "list"),
        ),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.prompt",
        title="A stop string that stands in the prompt ends nothing",
        why="Answers are empty as soon as the question holds the marker, as every quoted conversation does.",
        clauses=("openai:stop.excluded",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            Ask(name="first", body=chat_body("Say hello to zqxj and then name three colours.")),
            Ask(body=chat_body("Say hello to zqxj and then name three colours.", stop=["zqxj and then"]), wave=1),
        ),
        expects=(*generated("first", "it"), expect(is_untouched_by_prompt, "first", "it")),
        tries=2,
    ),
    Case(
        id="stop.usage",
        title="Tokens behind a stop string are not counted",
        why="Who stops early pays for the whole answer.",
        clauses=("openai:stop.excluded", "openai:usage.members"),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(_first(), Ask(body=_body(_STOP), wave=1)),
        expects=(*generated("first", "it"), expect(counts_less, "first", "it")),
        tries=2,
    ),
    Case(
        id="stop.usage_exact",
        title="completion_tokens counts every token up to and including the one that completed the stop",
        why="Two servers, or two versions of one, bill the same answer differently.",
        clauses=("tidegate:stop.usage",),
        severity=Severity.WRONG_BILL,
        profile=Profile.TIDEGATE,
        needs=(*_CHAT, Capability.LOGPROBS),
        asks=(_first(logprobs=True), Ask(body=_body(_STOP), wave=1)),
        expects=(*generated("first", "it"), expect(counts_through_stop, "first", "it")),
        tries=2,
    ),
    Case(
        id="stop.reason",
        title="stop_reason tells which stop string ended the answer",
        why="Applications that branch on the stop do not know which one it was.",
        clauses=("tidegate:stop.reason",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=_both(_LATER_AND_EARLIER),
        expects=_each_way(tells_stop_reason),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.include",
        title="With include_stop_str_in_output the text ends with the stop string",
        why="Parsers that need the closing marker do not get it.",
        clauses=("tidegate:stop.include",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=(
            _first(),
            Ask(name="whole", body=_body(_STOP, include_stop_str_in_output=True), wave=1),
            Ask(name="streamed", body=streamed(_body(_STOP, include_stop_str_in_output=True)), wave=1),
        ),
        expects=_each_way(ends_with_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.completions",
        title="Stop strings end completions too, whole and streamed",
        why="Code completion runs on past the end of the function.",
        clauses=("openai:stop.excluded",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.COMPLETIONS, Capability.STREAMS),
        asks=(
            completions_ask(completion_body("Once upon a time", max_tokens=_MAX), name="first"),
            completions_ask(completion_body("Once upon a time", max_tokens=_MAX, stop=_STOP), name="whole", wave=1),
            completions_ask(
                streamed(completion_body("Once upon a time", max_tokens=_MAX, stop=_STOP)), name="streamed", wave=1
            ),
        ),
        expects=_each_way(ends_before_stop),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.each_choice",
        title="Each of several choices ends at its own stop string",
        why="All choices but the first hold the marker and what follows it.",
        clauses=("openai:stop.excluded", "openai:choices.n"),
        severity=Severity.WRONG_DATA,
        needs=(*_CHAT, Capability.CHOICES),
        asks=(_first(), Ask(body=_body(_STOP, n=2), wave=1, is_refusable=True)),
        expects=(*generated("first", "it"), expect(holds_no_stop), expect(ends_before_stop, "first", "it")),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="stop.split_character",
        title="A stop is found on characters, also where one of them lies over two tokens",
        why="Stops beyond ASCII work or not by how the vocabulary cuts their bytes.",
        clauses=("tidegate:stop.first",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_STREAMS, Capability.SCRIPT),
        asks=(
            Ask(body=_body("é a"), script=pieces("caf", b"\xc3", b"\xa9 ", "au lait")),
            Ask(name="streamed", body=streamed(_body("é a")), script=pieces("caf", b"\xc3", b"\xa9 ", "au lait")),
        ),
        expects=(expect(says, text="caf", finish="stop"), expect(says, "streamed", text="caf", finish="stop")),
    ),
)
