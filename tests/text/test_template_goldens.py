"""Real chat templates against others' renderings: 53 of Hugging Face's tests, 147 that two engines agree on."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import InvalidTemplateInput
from tidegate.text.chat_template import ChatTemplate
from tidegate.text.template_budget import RenderBudget, RenderLimits
from tidegate.text.template_env import CompiledTemplate, UnusableTemplate

DATA = Path(__file__).parents[1] / "data/chat-templates"
HF_CASES = json.loads((DATA / "hf_jinja_cases.json").read_text("utf-8"))
RENDERS = json.loads((DATA / "llamacpp_renders.json").read_text("utf-8"))
TEMPLATES = json.loads((DATA / "llamacpp_templates.json").read_text("utf-8"))
SOURCES = {case["id"]: case["chat_template"] for case in HF_CASES} | TEMPLATES
LIMITS = RenderLimits(max_bytes=1 << 20, max_ms=1000, now=lambda: 0.0)

HF_DATE = datetime(2025, 7, 10)
"""When the expected renderings of templates that print the date were made."""
RENDER_DATE = datetime(2026, 1, 2, 3, 4, 5)

HF_EXCEPTIONS = {
    "custom/MadeAgents/Hammer2.1": "prints the tools with the filter `string`: JSON in JavaScript, where the expected"
    " text was made, but a Python literal in Jinja, which the model was trained with",
}
RENDER_EXCEPTIONS = {
    ("Kimi-K2-Instruct.jinja", "tool_roundtrip"): "calls list.append and list.pop, errors there; allowed here",
    ("Kimi-K2-Thinking.jinja", "tool_roundtrip"): "calls list.append and list.pop, errors there; allowed here",
}
AGREED = [row for row in RENDERS["renders"] if row["js_agrees"]]


def render(source: str, variables: dict[str, Any], date: datetime) -> str:
    own_copy = json.loads(json.dumps(variables))
    return CompiledTemplate(source, LIMITS).render(own_copy, date=date, budget=RenderBudget(LIMITS))


@pytest.mark.parametrize("case", HF_CASES, ids=lambda case: case["id"])
def test_hugging_face_case(case: dict[str, Any]) -> None:
    text = render(case["chat_template"], case["data"], HF_DATE)
    if case["id"] in HF_EXCEPTIONS:
        assert text != case["target"]
    else:
        assert text == case["target"]


@pytest.mark.parametrize("row", AGREED, ids=lambda row: f"{row['template']}-{row['context']}")
def test_rendering_that_two_engines_agree_on(row: dict[str, Any]) -> None:
    variables = RENDERS["contexts"][row["context"]]
    if (row["template"], row["context"]) in RENDER_EXCEPTIONS:
        assert "append" in row["error"]
        assert "21 °C" in render(TEMPLATES[row["template"]], variables, RENDER_DATE)
    elif "error" in row:
        with pytest.raises(InvalidTemplateInput):
            render(TEMPLATES[row["template"]], variables, RENDER_DATE)
    else:
        assert render(TEMPLATES[row["template"]], variables, RENDER_DATE) == row["output"]


def test_the_goldens_are_all_here() -> None:
    assert (len(HF_CASES), len(AGREED)) == (53, 147)


@pytest.mark.parametrize("name", ["tools", "tool_roundtrip"])
def test_a_generator_can_be_written_as_json(name: str) -> None:
    assert "get_weather" in render(TEMPLATES["llama-cpp-deepseek-r1.jinja"], RENDERS["contexts"][name], RENDER_DATE)


# template, roles whose lists of parts are kept, other things that were found out
CAPABILITIES = [
    ("Qwen-Qwen3-0.6B.jinja", "", {"supports_tools": True, "knows_developer": False}),
    ("Qwen3.5-4B.jinja", "assistant system tool user", {"supports_tools": True}),
    ("GLM-4.6.jinja", "assistant system user", {"supports_tools": True, "wants_argument_text": False}),
    ("openai-gpt-oss-120b.jinja", "", {"knows_developer": True}),
    ("microsoft-Phi-3.5-mini-instruct.jinja", "", {"supports_tools": False, "supports_system": True}),
    ("custom/deepseek-ai/DeepSeek-R1", "", {"wants_argument_text": True}),
    ("custom/meetkai/functionary-medium-v2.2", "", {"wants_argument_text": True}),
    ("custom/mistralai/Mixtral-8x7B-Instruct-v0.1", "", {"supports_system": False, "drops_system": False}),
    ("custom/CISCai/Mistral-7B-Instruct-v0.3-SOTA-GGUF", "", {"supports_system": False, "drops_system": True}),
    ("custom/Qwen/Qwen2.5-VL-7B-Instruct", "assistant system tool user", {"only_list_roles": frozenset()}),
    (
        "custom/meta-llama/Llama-Guard-3-11B-Vision",
        "assistant user",
        {"only_list_roles": frozenset(("assistant", "user"))},
    ),
    ("custom/CohereForAI/c4ai-command-r-v01 (JSON Schema)", "", {"supports_tools": True, "supports_system": True}),
]


@pytest.mark.parametrize(("name", "list_roles", "others"), CAPABILITIES, ids=[name for name, _, _ in CAPABILITIES])
def test_what_a_template_can_do_is_found_out(name: str, list_roles: str, others: dict[str, object]) -> None:
    found = ChatTemplate.compile(SOURCES[name], limits=LIMITS, bos_token="<s>", eos_token="</s>").capabilities
    assert found.list_roles == frozenset(list_roles.split())
    assert {key: getattr(found, key) for key in others} == others


UNUSABLE = {
    "custom/CohereForAI/c4ai-command-r-v01": "wants tools in a shape of its own, older than the API's",
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_published_template_loads(name: str) -> None:
    if name in UNUSABLE:
        with pytest.raises(UnusableTemplate):
            ChatTemplate.compile(SOURCES[name], limits=LIMITS, bos_token="<s>", eos_token="</s>")
    else:
        ChatTemplate.compile(SOURCES[name], limits=LIMITS, bos_token="<s>", eos_token="</s>")
