"""Request bodies that cases begin with."""

from typing import Any

QUESTION = "Name three colours."


def chat_body(text: str = QUESTION, **fields: Any) -> dict[str, Any]:
    """Returns a chat request of one user message: greedy, at most 16 tokens, unless `fields` say otherwise."""
    return {
        "model": "{model}",
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 16,
        **fields,
    }


def completion_body(prompt: Any = QUESTION, **fields: Any) -> dict[str, Any]:
    """Returns a completion request: greedy, at most 16 tokens, unless `fields` say otherwise."""
    return {"model": "{model}", "prompt": prompt, "temperature": 0, "max_tokens": 16, **fields}
