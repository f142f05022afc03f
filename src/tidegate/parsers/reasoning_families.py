"""Reasoning markers by name: those of the tool families, and of models that are known by their reasoning."""

from tidegate.parsers.families import FAMILIES, THINK, THINK_IN_PROMPT

REASONING = {
    "think": THINK,
    "qwen3": THINK,
    "deepseek_r1": THINK_IN_PROMPT,
    **{name: form.reasoning for name, form in FAMILIES.items()},
}
"""None for families without markers around reasoning; harmony's parser tells it apart by itself."""
