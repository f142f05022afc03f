"""The real chat templates of tests/data/chat-templates, compiled as the server compiles them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tidegate.text.chat_template import ChatTemplates
from tidegate.text.template_budget import RenderLimits

DATA = Path(__file__).parents[1] / "data" / "chat-templates"
LIMITS = RenderLimits(max_bytes=1_000_000, max_ms=10_000, now=lambda: 0.0)
UNUSABLE = {"c4ai-command-r-v01"}
"""Fails on every conversation without a list of tools, so that the server refuses it."""


@cache
def sources() -> dict[str, str]:
    """Returns each template's source by a short name; those of the second collection end in `.jinja`."""
    named = {case["id"].split("/")[-1]: case["chat_template"] for case in _load("hf_jinja_cases.json")}
    return {**named, **_load("llamacpp_templates.json")}


@cache
def compiled(name: str) -> ChatTemplates:
    """Returns a template ready to render."""
    return ChatTemplates.compile({"default": sources()[name]}, limits=LIMITS, bos_token="<s>", eos_token="</s>")


def _load(file: str) -> Any:
    return json.loads((DATA / file).read_text("utf-8"))
