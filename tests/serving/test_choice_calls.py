"""A choice with tool calls: when it ends and why, which tokens have entries, what grouping never changes."""

from dataclasses import replace
from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parsed_output import TOOLS
from tidegate.inference.event import (
    ChoiceFinished,
    ContentText,
    StreamEvent,
    ToolCallArguments,
    ToolCallStarted,
    merge_events,
)
from tidegate.inference.finish import EngineFinish, FinishReason, StopMatch
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.parsers.build_parser import build_parser
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.parser import OutputParser
from tidegate.serving.choice import ChoicePlan, ChoiceStream
from tidegate.serving.output_reading import ControlTokens
from tidegate.text.byte_tokenizer import FIRST_PIECE_ID, ByteVocabulary, ExtendedVocabulary, tokenize_pieces

EOS, LENGTH = EngineFinish.EOS, EngineFinish.LENGTH
PING = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
HALF = '<tool_call>{"name": "ping", "arguments": {"a": '


def make_parser(family: str) -> OutputParser:
    numbers = count()
    return build_parser(FAMILIES[family], OfferedTools(TOOLS.items()), lambda: f"call_{next(numbers)}")


def plan_of(family: str, pieces: list[bytes]) -> tuple[ChoicePlan, list[int]]:
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), pieces)
    return ChoicePlan(vocabulary, make_parser=partial(make_parser, family)), token_ids


def deltas_of(token_ids: list[int], finish: EngineFinish, steps: list[int]) -> list[TokenDelta]:
    deltas, at = [], 0
    for size in [*steps, len(token_ids)]:
        part = token_ids[at : at + size]
        at += len(part)
        is_last = at == len(token_ids)
        scores = [TokenLogprob(token_id, -1.0) for token_id in part]
        deltas.append(TokenDelta("r", 0, part, finish if is_last else None, scores))
        if is_last:
            break
    return deltas


def read(plan: ChoicePlan, deltas: list[TokenDelta]) -> list[StreamEvent]:
    choice = ChoiceStream(plan)
    return merge_events([event for delta in deltas for event in choice.feed(delta)])


def read_text(text: str, finish: EngineFinish = EOS, **changes: object) -> list[StreamEvent]:
    plan, token_ids = plan_of("hermes", [text.encode()])
    return read(replace(plan, **changes), deltas_of(token_ids, finish, []))  # type: ignore[arg-type]


ENDS: list[tuple[str, EngineFinish, FinishReason]] = [
    ("no call", EOS, FinishReason.STOP),
    (PING, EOS, FinishReason.TOOL_CALLS),
    (f"text {PING}\n", EOS, FinishReason.TOOL_CALLS),
    (f"{PING} and more", EOS, FinishReason.TOOL_CALLS),
    (PING, LENGTH, FinishReason.LENGTH),
    (HALF, LENGTH, FinishReason.LENGTH),
    (HALF, EOS, FinishReason.STOP),
    (PING + HALF, EOS, FinishReason.TOOL_CALLS),
    (PING + HALF, LENGTH, FinishReason.LENGTH),
    ('<tool_call>{"name": "nope", "arguments": {}}</tool_call>', EOS, FinishReason.STOP),
]


@pytest.mark.parametrize(("text", "finish", "reason"), ENDS, ids=[str(i) for i in range(len(ENDS))])
def test_a_choice_with_a_complete_call_ends_with_tool_calls_unless_it_was_cut(
    text: str, finish: EngineFinish, reason: FinishReason
) -> None:
    assert read_text(text, finish)[-1] == ChoiceFinished(reason)


def test_a_named_call_ends_with_stop_and_a_deprecated_one_with_its_own_word() -> None:
    assert read_text(PING, calls_finish=FinishReason.STOP)[-1] == ChoiceFinished(FinishReason.STOP)
    legacy = FinishReason.FUNCTION_CALL
    assert read_text(PING, calls_finish=legacy)[-1] == ChoiceFinished(legacy)
    assert read_text("text", calls_finish=legacy)[-1] == ChoiceFinished(FinishReason.STOP)


@pytest.mark.parametrize("finish", [EOS, LENGTH])
def test_where_one_call_is_allowed_the_choice_ends_with_it(finish: EngineFinish) -> None:
    plan, token_ids = plan_of("hermes", [PING[:-1].encode(), b">", f"\n{PING}".encode()])
    choice = ChoiceStream(replace(plan, allows_many_calls=False))
    events = [event for delta in deltas_of(token_ids, finish, []) for event in choice.feed(delta)]
    assert [event for event in events if isinstance(event, ToolCallStarted)] == [ToolCallStarted(0, "call_0", "ping")]
    assert events[-1] == ChoiceFinished(FinishReason.TOOL_CALLS)
    assert choice.num_tokens == 2


def test_a_stop_string_after_a_call_is_a_stop_and_one_in_arguments_is_none() -> None:
    text = '<tool_call>{"name": "ping", "arguments": {"a": "STOP"}}</tool_call> so STOP here'
    events = read_text(text, stop_strings=("STOP",))
    assert [event for event in events if isinstance(event, ToolCallArguments)] == [
        ToolCallArguments(0, '{"a": "STOP"}')
    ]
    assert events[-1] == ChoiceFinished(FinishReason.STOP, StopMatch(text="STOP"))


def test_what_a_stop_string_holds_back_comes_out_when_one_call_ends_the_choice() -> None:
    events = read_text(f"Hm\n{PING}", stop_strings=("\n\n",), allows_many_calls=False)
    assert "".join(event.text for event in events if isinstance(event, ContentText)) == "Hm\n"


TOKENS = ["So ", "é", "x<", "tool_call>", '{"name": "ping",', ' "arguments": {}}', "</tool_", "call>after", " it"]
ENTRIES = {"So ", "é", "x<", "after", " it"}


def test_entries_belong_to_tokens_of_which_some_text_is_content() -> None:
    pieces = [text.encode() for text in TOKENS]
    plan, token_ids = plan_of("hermes", [*pieces[:1], *(bytes([byte]) for byte in pieces[1]), *pieces[2:]])
    for steps in ([], [1] * 20, [3] * 5):
        events = read(replace(plan, want_logprobs=True), deltas_of(token_ids, EOS, steps))
        contents = [event for event in events if isinstance(event, ContentText)]
        assert "".join(event.text for event in contents) == "So éxafter it"
        entries = [entry for event in contents for entry in event.logprobs]
        assert [entry.token_bytes for entry in entries] == [b"So ", b"\xc3", b"\xa9", b"x", b"after", b" it"]


def test_reasoning_has_no_entries() -> None:
    tokens = ["<think>", "why", "</think>\n", "\nso", "!"]
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), [text.encode() for text in tokens])
    form = FAMILIES["hermes"]
    plan = ChoicePlan(
        vocabulary,
        want_logprobs=True,
        make_parser=lambda: build_parser(form, OfferedTools(TOOLS.items()), lambda: "c", reasoning=form.reasoning),
    )
    events = read(plan, deltas_of(token_ids, EOS, [1] * 9))
    entries = [entry for event in events if isinstance(event, ContentText) for entry in event.logprobs]
    assert [entry.token_bytes for entry in entries] == [b"so", b"!"]


def test_control_tokens_of_the_format_reach_the_parser_and_no_others_show() -> None:
    form = FAMILIES["granite"]
    controls = ["<|tool_call|>", "<|other|>"]
    base = ExtendedVocabulary(ByteVocabulary(), [text.encode() for text in controls], 300, are_special=True)
    token_ids, vocabulary = tokenize_pieces(base, [b'[{"name": "ping", "arguments": {}}]', b"text"])
    shown = ControlTokens({text: 300 + i for i, text in enumerate(controls)}).spelled_in(form, None)
    assert shown == {300}
    memo: dict[int, str] = {}
    plan = ChoicePlan(vocabulary, make_parser=partial(make_parser, "granite"), visible_ids=shown, text_memo=memo)
    events = read(plan, deltas_of([301, 300, token_ids[0], 301], EOS, [1] * 9))
    assert [type(event) for event in events] == [ToolCallStarted, ToolCallArguments, ChoiceFinished]
    assert 300 not in memo
    plain = ChoicePlan(vocabulary, text_memo=memo)
    assert read(plain, deltas_of([300, token_ids[1], 301], EOS, [1] * 9))[0] == ContentText("text")
    assert read(plan, deltas_of([300, token_ids[0]], EOS, []))[0] == ToolCallStarted(0, "call_0", "ping")
    assert token_ids[0] >= FIRST_PIECE_ID


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_cut_at_every_token_a_call_is_never_complete_and_its_opening_never_content(name: str) -> None:
    example = FAMILIES[name].example
    plan, token_ids = plan_of(name, [char.encode() for char in example])
    longest = max(map(len, (*FAMILIES[name].opens, *(FAMILIES[name].section or ()), "<|message|>")))
    for at in range(1, len(token_ids) + 1):
        events = read(plan, deltas_of(token_ids[:at], LENGTH, []))
        assert events[-1] == ChoiceFinished(FinishReason.LENGTH)
        content = "".join(event.text for event in events if isinstance(event, ContentText))
        assert 2 * len(content) <= longest


@pytest.mark.parametrize("name", sorted(FAMILIES))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_how_an_output_is_cut_into_tokens_and_steps_never_shows(name: str, data: st.DataObject) -> None:
    example = FAMILIES[name].example
    parts = st.sampled_from([example, example[: len(example) // 2], "Hm, ", "\n", " é😀 ", example[::-1][:9]])
    text = "".join(data.draw(st.lists(parts, min_size=1, max_size=4))).encode()
    places = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True) if end > start]
    finish = data.draw(st.sampled_from([EOS, LENGTH]))
    changes = {"want_logprobs": data.draw(st.booleans()), "allows_many_calls": data.draw(st.booleans())}
    plan, token_ids = plan_of(name, pieces)
    plan = replace(plan, **changes)
    whole = read(plan, deltas_of(token_ids, finish, []))
    steps = data.draw(st.lists(st.integers(1, 4), max_size=20))
    assert read(plan, deltas_of(token_ids, finish, steps)) == whole
    contents = [event for event in whole if isinstance(event, ContentText)]
    assert not contents or bool(contents[0].logprobs) == changes["want_logprobs"]
