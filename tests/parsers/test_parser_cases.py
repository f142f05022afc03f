"""The published cases of tool calls and reasoning, each at every split of its text."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.parsed_output import Output, parser_of, read_output
from tidegate.parsers.parser import OutputParser
from tidegate.testing.check_parser import check_parser

LINES = (Path(__file__).parents[1] / "data/cases/cases.jsonl").read_text("utf-8").splitlines()
CASES = [case for case in map(json.loads, LINES) if case["kind"] in ("tool_parser", "reasoning_parser")]
REASONING_OF = {"qwen3+hermes": "qwen3", "command_a": "command_a"}


def parser_for(case: dict[str, Any]) -> OutputParser:
    given = case["input"]
    form = given["format"]
    if case["kind"] == "reasoning_parser":
        if form == "harmony":
            return parser_of("harmony", tools={})
        return parser_of(None, form, is_open=form == "deepseek_r1")
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in given["tools"]}
    return parser_of(form.split("+")[-1], REASONING_OF.get(form), tools=tools)


def outer(text: str | None, case: dict[str, Any], kind: str) -> str:
    expect = case["expect"]
    is_loose = "strip" in (expect.get(f"{kind}_cmp"), expect.get("cmp"), expect.get(f"cmp_{kind}"))
    return (text or "").strip() if is_loose else text or ""


def check_output(output: Output, case: dict[str, Any]) -> None:
    expect = case["expect"]
    assert outer(output.content, case, "content") == outer(expect["content"], case, "content")
    assert outer(output.reasoning, case, "reasoning") == outer(expect.get("reasoning"), case, "reasoning")
    calls = [(call["name"], call["arguments"]) for call in expect.get("tool_calls", [])]
    assert output.calls == calls
    for (_, found), (_, wanted) in zip(output.calls, calls, strict=True):
        assert json.dumps(found) == json.dumps(wanted) or found == wanted
    if "arguments_text" in expect:
        assert output.arguments == expect["arguments_text"]
    for markup in expect.get("forbid_in_content", []):
        assert markup not in output.content


def test_all_cases_are_here() -> None:
    kinds = [case["kind"] for case in CASES]
    assert (kinds.count("tool_parser"), kinds.count("reasoning_parser")) == (53, 14)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_gives_what_it_says_at_every_split(case: dict[str, Any]) -> None:
    given = case["input"]
    pieces = given.get("pieces") or [given["text"]]
    is_cut = given.get("finish") == "length"
    check_output(read_output(parser_for(case), pieces, is_cut=is_cut), case)
    check_parser(lambda: parser_for(case), ["".join(pieces)])
