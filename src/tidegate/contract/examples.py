"""Request bodies that work as they stand, for the documents about this server. A test sends them all."""

from typing import Any

Example = dict[str, Any]

_HELLO = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "Why is the sea salty?"},
]


def request_examples(model: str) -> dict[str, dict[str, Example]]:
    """Returns bodies by path and by what they show, for a served model's name."""
    return {
        "/v1/chat/completions": {
            "whole": {"model": model, "messages": _HELLO, "max_completion_tokens": 32},
            "stream": {
                "model": model,
                "messages": _HELLO,
                "max_completion_tokens": 32,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
            "choices": {
                "model": model,
                "messages": _HELLO,
                "max_completion_tokens": 16,
                "n": 2,
                "temperature": 0.7,
                "seed": 7,
                "logprobs": True,
                "top_logprobs": 2,
            },
        },
        "/v1/completions": {
            "whole": {"model": model, "prompt": "Once upon a time", "max_tokens": 16, "stop": ["\n"]},
            "stream": {"model": model, "prompt": "Once upon a time", "max_tokens": 16, "stream": True},
            "batch": {"model": model, "prompt": ["One,", "Two,"], "max_tokens": 8, "temperature": 0},
        },
        "/v1/tokenize": {
            "text": {"model": model, "text": "the sea", "return_token_strs": True},
            "chat": {"model": model, "messages": _HELLO},
        },
        "/v1/detokenize": {"ids": {"model": model, "tokens": [65, 66, 67]}},
    }
