"""The `detok` and `stop` cases, driven through detokenizer and stop matcher as the stream of a choice is."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tidegate.text.byte_tokenizer import ByteVocabulary, tokenize_pieces
from tidegate.text.detokenizer import Detokenizer
from tidegate.text.stop_matcher import StopMatcher

LINES = (Path(__file__).parents[1] / "data/cases/cases.jsonl").read_text("utf-8").splitlines()
CASES = [case for case in map(json.loads, LINES) if case["kind"] in ("detok", "stop")]


@dataclass
class Outcome:
    deltas: list[str] = field(default_factory=list)
    sent_after: dict[int, str] = field(default_factory=dict)
    num_tokens: int = 0
    reason: str = ""


def play(given: dict[str, Any]) -> Outcome:
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), [bytes.fromhex(piece) for piece in given["pieces"]])
    budget = given.get("max_tokens", len(token_ids))
    detokenizer = Detokenizer(vocabulary, skip_special=True)
    matcher = StopMatcher(tuple(given.get("stop", ())), include_match=given.get("include_stop", False))
    outcome = Outcome(reason="stop" if given["finish_engine"] == "eos" and budget >= len(token_ids) else "length")
    for token_id in token_ids[:budget]:
        outcome.num_tokens += 1
        text = detokenizer.feed(token_id)
        searches = outcome.num_tokens > given.get("min_tokens", 0)
        outcome.deltas.append(matcher.feed(text) if searches else matcher.pass_through(text))
        outcome.sent_after[outcome.num_tokens] = "".join(outcome.deltas)
        if matcher.match is not None:
            outcome.reason = "stop"
            return outcome
    outcome.deltas += [matcher.feed(detokenizer.finish()), matcher.finish()]
    return outcome


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    outcome, expect = play(case["input"]), case["expect"]
    text = "".join(outcome.deltas)
    assert text in expect.get("text_any", [expect.get("text", text)])
    assert text == expect.get("deltas_join", text)
    assert outcome.reason == expect["finish_reason"]
    assert outcome.num_tokens == expect.get("completion_tokens", outcome.num_tokens)
    for forbidden in expect.get("forbid_in_deltas", ()):
        assert not any(forbidden in delta for delta in outcome.deltas)
    for num_pieces, sent in expect.get("prefix_after", {}).items():
        assert outcome.sent_after[int(num_pieces)] == sent
    for forbidden in expect.get("not_contains", ()):
        assert forbidden not in text


def test_all_cases_are_here() -> None:
    assert len(CASES) == 33
