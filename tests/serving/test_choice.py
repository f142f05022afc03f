"""One choice from deltas to events: grouping of tokens into steps never shows."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inference.event import ChoiceFinished, ContentText, StreamEvent, merge_events
from tidegate.inference.finish import EngineFinish, FinishReason, StopMatch
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.serving.choice import ChoicePlan, ChoiceStream
from tidegate.text.byte_tokenizer import EOS_TOKEN_ID, ByteVocabulary, tokenize_pieces

PLAN = ChoicePlan(ByteVocabulary(), eos_token_ids=frozenset({EOS_TOKEN_ID}))


def delta(
    token_ids: list[int], finish: EngineFinish | None = None, stop_token: int | None = None, *, scored: bool = False
) -> TokenDelta:
    logprobs = [TokenLogprob(token_id, -float(i + 1)) for i, token_id in enumerate(token_ids)] if scored else None
    return TokenDelta("r", 0, token_ids, finish, logprobs, stop_token)


def read(plan: ChoicePlan, deltas: list[TokenDelta]) -> tuple[list[StreamEvent], ChoiceStream]:
    choice = ChoiceStream(plan)
    events = [event for one in deltas for event in choice.feed(one)]
    return events, choice


def content(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ContentText))


# what the engine says, what the caller is told
GRAMMAR_ENDS = [
    (EngineFinish.GRAMMAR_COMPLETE, None),
    (EngineFinish.GRAMMAR_DEAD_END, StopMatch(is_dead_end=True)),
]


@pytest.mark.parametrize(("finish", "match"), GRAMMAR_ENDS, ids=[finish.name for finish, _ in GRAMMAR_ENDS])
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_grammars_end_is_a_stop_whose_last_token_shows(
    finish: EngineFinish, match: StopMatch | None, is_alone: bool
) -> None:
    deltas = [delta([97, 98]), delta([], finish)] if is_alone else [delta([97, 98], finish)]
    events, choice = read(PLAN, deltas)
    assert content(events) == "ab"
    assert events[-1] == ChoiceFinished(FinishReason.STOP, match)
    assert choice.num_tokens == 2


def test_what_is_held_back_at_a_dead_end_is_text() -> None:
    events, _ = read(replace(PLAN, stop_strings=("bcd",)), [delta([97, 98], EngineFinish.GRAMMAR_DEAD_END)])
    assert content(events) == "ab"
    assert events[-1] == ChoiceFinished(FinishReason.STOP, StopMatch(is_dead_end=True))


def test_an_end_token_counts_and_does_not_show() -> None:
    events, choice = read(PLAN, [delta([97, 98]), delta([EOS_TOKEN_ID], EngineFinish.EOS)])
    assert content(events) == "ab"
    assert events[-1] == ChoiceFinished(FinishReason.STOP)
    assert choice.num_tokens == 3


def test_an_engine_that_ends_without_an_end_token_hides_nothing() -> None:
    events, choice = read(PLAN, [delta([97, 98], EngineFinish.EOS)])
    assert content(events) == "ab"
    assert choice.num_tokens == 2


def test_a_stop_token_is_named_and_shows_only_when_asked_for() -> None:
    deltas = [delta([97]), delta([98], EngineFinish.STOP_TOKEN, 98)]
    events, _ = read(PLAN, deltas)
    assert content(events) == "a"
    assert events[-1] == ChoiceFinished(FinishReason.STOP, StopMatch(token_id=98))
    events, _ = read(replace(PLAN, include_stop=True), deltas)
    assert content(events) == "ab"


def test_control_tokens_show_only_when_asked_for() -> None:
    deltas = [delta([97, EOS_TOKEN_ID, 98], EngineFinish.LENGTH)]
    assert content(read(PLAN, deltas)[0]) == "ab"
    assert content(read(replace(PLAN, skip_special=False), deltas)[0]) == "a<|eos|>b"


def test_after_a_stop_string_nothing_more_is_read_or_counted() -> None:
    plan = replace(PLAN, stop_strings=("c",))
    events, choice = read(plan, [delta([97, 98, 99, 100, 101]), delta([102], EngineFinish.LENGTH)])
    assert content(events) == "ab"
    assert events[-1] == ChoiceFinished(FinishReason.STOP, StopMatch(text="c"))
    assert [event for event in events if isinstance(event, ChoiceFinished)] == [events[-1]]
    assert choice.num_tokens == 3


def test_a_stop_that_completes_with_the_last_allowed_token_is_a_stop() -> None:
    events, _ = read(replace(PLAN, stop_strings=("b",)), [delta([97, 98], EngineFinish.LENGTH)])
    assert events[-1] == ChoiceFinished(FinishReason.STOP, StopMatch(text="b"))


def test_a_cut_off_character_at_the_end_is_one_replacement_character() -> None:
    events, _ = read(PLAN, [delta([97, 0xF0, 0x9F], EngineFinish.LENGTH)])
    assert content(events) == "a\ufffd"


def test_token_ids_travel_with_the_text_and_none_is_lost() -> None:
    plan = replace(PLAN, want_token_ids=True)
    events, _ = read(plan, [delta([0xC3]), delta([0xA9]), delta([97]), delta([EOS_TOKEN_ID], EngineFinish.EOS)])
    texts = [event for event in events if isinstance(event, ContentText)]
    assert [token_id for event in texts for token_id in event.token_ids] == [0xC3, 0xA9, 97, EOS_TOKEN_ID]


class TestLogprobs:
    plan = replace(PLAN, want_logprobs=True, text_start=10)

    def entries(self, plan: ChoicePlan, deltas: list[TokenDelta]) -> list[tuple[str, float | None, bytes, int]]:
        events, _ = read(plan, deltas)
        return [
            (entry.token, entry.logprob, entry.token_bytes, entry.text_offset)
            for event in events
            if isinstance(event, ContentText)
            for entry in event.logprobs
        ]

    def test_the_tokens_of_one_character_leave_together_with_it(self) -> None:
        choice = ChoiceStream(self.plan)
        assert choice.feed(delta([0xF0], scored=True)) == []
        assert choice.feed(delta([0x9F, 0x98], scored=True)) == []
        (event,) = choice.feed(delta([0x80], scored=True))
        assert isinstance(event, ContentText)
        assert event.text == "\U0001f600"
        assert [entry.token_bytes for entry in event.logprobs] == [b"\xf0", b"\x9f", b"\x98", b"\x80"]
        assert {entry.text_offset for entry in event.logprobs} == {10}

    def test_tokens_of_a_stop_string_have_no_entry(self) -> None:
        plan = replace(self.plan, stop_strings=("bc",))
        deltas = [delta([97, 98], scored=True), delta([99], scored=True)]
        assert self.entries(plan, deltas) == [("a", -1.0, b"a", 10)]

    def test_a_token_that_a_stop_string_cuts_keeps_what_is_visible(self) -> None:
        token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), [b"I ", b"love Paris"])
        plan = replace(self.plan, vocabulary=vocabulary, stop_strings=("Pari",))
        entries = self.entries(plan, [delta(token_ids, scored=True)])
        assert entries == [("I ", -1.0, b"I ", 10), ("love ", -2.0, b"love ", 12)]

    def test_a_false_alarm_releases_text_and_entries(self) -> None:
        plan = replace(self.plan, stop_strings=("bcd",))
        deltas = [delta([97, 98, 99], scored=True), delta([120], EngineFinish.LENGTH, scored=True)]
        assert [token for token, *_ in self.entries(plan, deltas)] == ["a", "b", "c", "x"]

    def test_an_end_token_has_no_entry(self) -> None:
        deltas = [delta([97, EOS_TOKEN_ID], EngineFinish.EOS, scored=True)]
        assert [token for token, *_ in self.entries(self.plan, deltas)] == ["a"]


TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "é", "\U0001f600", "aab", " "]), max_size=12).map("".join)


@given(
    text=TEXTS,
    stops=st.lists(st.sampled_from(["ab", "b a", "aab", "é", "zz"]), max_size=2, unique=True),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    min_tokens=st.integers(0, 4),
    include_stop=st.booleans(),
)
def test_every_grouping_of_tokens_into_steps_gives_the_same_events(
    text: str, stops: list[str], cuts: list[int], min_tokens: int, include_stop: bool
) -> None:
    plan = replace(
        PLAN, stop_strings=tuple(stops), min_tokens=min_tokens, include_stop=include_stop, want_logprobs=True
    )
    token_ids = list(text.encode())
    scores = [TokenLogprob(token_id, -0.5) for token_id in token_ids]
    at = sorted({0, len(token_ids), *(cut for cut in cuts if cut < len(token_ids))})
    grouped = [TokenDelta("r", 0, token_ids[start:end], logprobs=scores[start:end]) for start, end in pairwise(at)]
    end = [TokenDelta("r", 0, [], EngineFinish.LENGTH)]
    whole, whole_choice = read(plan, [TokenDelta("r", 0, token_ids, EngineFinish.LENGTH, scores)])
    parts, parts_choice = read(plan, grouped + end)
    assert merge_events(parts) == merge_events(whole)
    assert parts_choice.num_tokens == whole_choice.num_tokens
    if not stops:
        assert content(whole) == text
        texts = [event for event in whole if isinstance(event, ContentText)]
        assert b"".join(entry.token_bytes for event in texts for entry in event.logprobs) == text.encode()


@pytest.mark.parametrize("finish", [EngineFinish.ABORTED, EngineFinish.FAILED])
def test_an_unnatural_end_is_left_to_the_driver(finish: EngineFinish) -> None:
    events, choice = read(PLAN, [delta([97], finish)])
    assert content(events) == "a"
    assert not choice.is_finished
