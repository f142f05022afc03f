"""The `template` cases, with a tokenizer whose control tokens are known."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import InvalidRequest
from tidegate.text.chat_template import ChatInput, ChatTemplate
from tidegate.text.control_split import ControlTable, split_controls
from tidegate.text.template_budget import RenderLimits

LINES = (Path(__file__).parents[1] / "data/cases/cases.jsonl").read_text("utf-8").splitlines()
CASES = [case for case in map(json.loads, LINES) if case["kind"] == "template"]
CONTROLS = ControlTable({spelling: number for number, spelling in enumerate(("<s>", "<|im_start|>", "<|im_end|>"))})
LIMITS = RenderLimits(max_bytes=10_000, max_ms=1000, now=lambda: 0.0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    template = ChatTemplate.compile(
        given["template"],
        limits=LIMITS,
        bos_token=given.get("bos_token", ""),
        control_spellings=CONTROLS.spellings,
    )
    chat = ChatInput(
        given["messages"],
        add_generation_prompt=given.get("add_generation_prompt"),
        continue_final_message=given.get("continue_final_message", False),
    )
    if expect.get("status") == 400:
        with pytest.raises(InvalidRequest):
            template.render(chat, date=datetime(2026, 1, 2))
        return
    prompt = template.render(chat, date=datetime(2026, 1, 2))
    assert prompt.text == expect.get("prompt", expect.get("prompt_text", prompt.text))
    at = 0
    for part in expect.get("contains_in_order", ()):
        at = prompt.text.index(part, at) + len(part)
    for forbidden in expect.get("not_contains", ()):
        assert forbidden not in prompt.text
    names = {number: spelling for spelling, number in CONTROLS.ids.items()}
    counts = Counter(names[part] for part in split_controls(prompt, CONTROLS) if isinstance(part, int))
    assert counts["<s>"] == expect.get("bos_count", counts["<s>"])
    for spelling, number in expect.get("special_token_count", {}).items():
        assert counts[spelling] == number


def test_all_cases_are_here() -> None:
    assert len(CASES) == 10
