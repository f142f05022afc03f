"""Log-probabilities, of chat and of completions."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import both_ways, completions_ask, generated, pieces, streamed
from tidegate.conformance.checks.completion_logprobs import (
    begins_at,
    has_lists,
    has_maps,
    has_same_lists,
    has_steady_offsets,
    says_text,
)
from tidegate.conformance.checks.logprob_entries import (
    concatenates,
    has_chosen_on_top,
    has_entries,
    has_entry_per_token,
    has_no_entries,
    has_own_bytes,
    has_right_bytes,
    has_same_entries,
    has_same_first_entry,
    has_top,
    is_in_range,
    is_sorted,
    travels_with_text,
)
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT, Capability.LOGPROBS)
_STREAMS = (*_CHAT, Capability.STREAMS)
_COMPLETIONS = (Capability.COMPLETIONS, Capability.COMPLETION_LOGPROBS)
_TEXT = "The colours of the rainbow are red,"
_BODY = chat_body(logprobs=True, top_logprobs=3)
_TOP = [[["Red", -0.1], ["Blue", -3.0], ["Tan", -4.0]], [[",", -0.2], [" and", -2.0], ["!", -5.0]]]
_SCRIPT = pieces("Red", ",", logprobs=[-0.1, -0.2], top=_TOP)
"""The scripted engine knows no alternatives but those of its script."""
_CUT_CHARACTERS = pieces("a", b"\xf0\x9f", b"\x98\x80", b"\xe6\x97", b"\xa5", "b")


def _ask(**fields: Any) -> Ask:
    return Ask(body=chat_body(logprobs=True, **fields), is_refusable=True)


_IT = (Ask(body=_BODY, script=_SCRIPT, is_refusable=True),)
_WHOLE_AND_STREAMED = (
    Ask(name="whole", body=_BODY, script=_SCRIPT, is_refusable=True),
    Ask(body=streamed(_BODY), script=_SCRIPT, is_refusable=True, wave=1),
)


def _completion(name: str = "it", *, is_stream: bool = False, wave: int = 0, **fields: Any) -> Ask:
    body = completion_body(_TEXT, logprobs=2, **fields)
    return completions_ask(streamed(body) if is_stream else body, name=name, wave=wave, is_refusable=True)


def _case(name: str, title: str, why: str, clause: str, check: Expect, **fields: Any) -> Case:
    """Returns a case of one chat answer with three alternatives a token, on which one thing is checked."""
    return Case(
        id=f"logprobs.{name}",
        title=title,
        why=why,
        clauses=(clause,),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=_IT,
        expects=(*generated(), check),
        **fields,
    )


CASES: tuple[Case, ...] = (
    _case(
        "entries",
        "Each token of the answer has an entry with token, logprob, bytes and top_logprobs, all numbers finite",
        "Typed clients fail at the entry; evaluations fail at infinity, which is no JSON.",
        "openai:logprobs.content",
        expect(has_entries),
    ),
    _case(
        "text",
        "The entries say the content: their bytes, one after the other, are its bytes",
        "Scores are put to other words than those that they belong to.",
        "openai:logprobs.content",
        expect(concatenates),
    ),
    _case(
        "bytes",
        "bytes are those of the token",
        "Clients that put characters together from bytes get others.",
        "openai:logprobs.bytes",
        expect(has_right_bytes),
    ),
    _case(
        "every_token",
        "There are as many entries as completion_tokens",
        "Sums over the entries, like perplexities, are of another text.",
        "openai:logprobs.content",
        expect(has_entry_per_token),
    ),
    _case(
        "top_count",
        "top_logprobs: 3 gives three alternatives a token, and never more",
        "Classifiers that look for their labels among the alternatives do not find them.",
        "openai:logprobs.top",
        expect(has_top, num_top=3, is_exact=False),
    ),
    _case(
        "top_exact",
        "top_logprobs: 3 gives exactly three alternatives at every token",
        "Tables of alternatives have rows of unequal length.",
        "tidegate:logprobs.top",
        expect(has_top, num_top=3),
        profile=Profile.TIDEGATE,
    ),
    _case(
        "sorted",
        "Alternatives stand in falling order, and none twice",
        "Clients that take the first for the likeliest take another.",
        "openai:logprobs.top",
        expect(is_sorted),
    ),
    _case(
        "range",
        "Logprobs are at most 0, and the probabilities of one place at most 1 together",
        "Confidence is above 100 %, or logits are sold for probabilities.",
        "openai:logprobs.values",
        expect(is_in_range),
    ),
    _case(
        "chosen_on_top",
        "The tokens of a greedy answer are the likeliest ones, with the same logprob in both places",
        "The alternatives belong to another place, or another distribution, than the token.",
        "openai:logprobs.top",
        expect(has_chosen_on_top),
    ),
    Case(
        id="logprobs.top_absent",
        title="Without top_logprobs, and with 0, the lists of alternatives are empty",
        why="Answers are many times as large as what was asked for.",
        clauses=("openai:logprobs.top",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=(_ask(), Ask(name="zero", body=chat_body(logprobs=True, top_logprobs=0), is_refusable=True)),
        expects=(*generated("it", "zero"), expect(has_top, num_top=0), expect(has_top, "zero", num_top=0)),
    ),
    Case(
        id="logprobs.not_asked",
        title="Without logprobs there are none, whole or streamed",
        why="Answers are many times as large as what was asked for.",
        clauses=("openai:logprobs.content",),
        severity=Severity.NUISANCE,
        needs=(Capability.CHAT, Capability.STREAMS),
        asks=both_ways(chat_body()),
        expects=(*generated("whole", "it"), expect(has_no_entries, "whole"), expect(has_no_entries)),
    ),
    Case(
        id="logprobs.streamed",
        title="A stream has the entries of the whole answer",
        why="Scores are missing, or come twice, as soon as the answer is streamed.",
        clauses=("openai:logprobs.stream",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=_WHOLE_AND_STREAMED,
        expects=(*generated("whole", "it"), expect(has_same_entries, "whole", "it")),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="logprobs.with_text",
        title="The entries of a stream do not come after their text",
        why="A client that draws words in the colour of their scores has none to draw with.",
        clauses=("openai:logprobs.stream",),
        severity=Severity.NUISANCE,
        needs=_STREAMS,
        asks=(Ask(body=streamed(_BODY), script=_SCRIPT, is_refusable=True),),
        expects=(*generated(), expect(travels_with_text)),
    ),
    Case(
        id="logprobs.split_characters",
        title="Tokens that are parts of characters have their own bytes, which are the text's together",
        why="Every character beyond the vocabulary has U+FFFD for its score.",
        clauses=("tidegate:logprobs.bytes",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_STREAMS, Capability.SCRIPT),
        asks=both_ways(chat_body(logprobs=True), script=_CUT_CHARACTERS),
        expects=(*generated("whole", "it"), expect(has_own_bytes, "whole"), expect(has_own_bytes)),
    ),
    Case(
        id="logprobs.raw",
        title="Logprobs are the model's own: temperature does not change them",
        why="The same answer is more or less certain by a setting that has nothing to do with the model.",
        clauses=("tidegate:logprobs.raw",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_CHAT,
        asks=(
            Ask(name="cold", body=_BODY, script=_SCRIPT),
            Ask(body={**_BODY, "temperature": 2, "seed": 1}, script=_SCRIPT),
        ),
        expects=(*generated("cold", "it"), expect(has_same_first_entry, "cold", "it")),
    ),
    Case(
        id="logprobs.lists",
        title="logprobs of a completion are lists of one length, of finite numbers at most 0 and whole offsets",
        why="Evaluations that walk the lists side by side fail, or score other tokens.",
        clauses=("openai:logprobs.completions",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_COMPLETIONS,
        asks=(_completion(),),
        expects=(*generated(), expect(has_lists)),
    ),
    Case(
        id="logprobs.tokens_say_text",
        title="The tokens of a completion, one after the other, are its text",
        why="Scores are put to other words than those that they belong to.",
        clauses=("openai:logprobs.completions",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(_completion(),),
        expects=(*generated(), expect(says_text)),
    ),
    Case(
        id="logprobs.offsets",
        title="text_offset grows by the length of each token",
        why="Clients that mark words by their offsets mark others.",
        clauses=("openai:logprobs.completions",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(_completion(),),
        expects=(*generated(), expect(has_steady_offsets)),
    ),
    Case(
        id="logprobs.offset_start",
        title="text_offset counts from the start of prompt and completion together",
        why="With and without echo the same word has two places.",
        clauses=("tidegate:logprobs.offset",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_COMPLETIONS, Capability.ECHO),
        asks=(_completion(), _completion("echoed", echo=True)),
        expects=(
            *generated("it", "echoed"),
            expect(begins_at, offset=len(_TEXT)),
            expect(begins_at, "echoed", offset=0),
        ),
    ),
    Case(
        id="logprobs.maps",
        title="logprobs: 2 gives each token of a completion a map of its two likeliest tokens, and no more than three",
        why="Evaluations that ask whether the right token was the likeliest cannot.",
        clauses=("openai:logprobs.completions",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(_completion(),),
        expects=(*generated(), expect(has_maps, num_top=2)),
    ),
    Case(
        id="logprobs.completions_streamed",
        title="A streamed completion has the tokens, offsets and numbers of the whole one",
        why="Offsets begin anew in every chunk, or scores are missing.",
        clauses=("openai:logprobs.completions", "openai:stream.completions"),
        severity=Severity.WRONG_DATA,
        needs=(*_COMPLETIONS, Capability.STREAMS),
        asks=(_completion("whole"), _completion(is_stream=True, wave=1)),
        expects=(*generated("whole", "it"), expect(has_same_lists, "whole", "it")),
        turn=Turn.ALONE,
        tries=2,
    ),
)
