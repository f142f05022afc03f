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
        "/v1/embeddings": {
            "text": {"model": model, "input": "The tide rises, the tide falls."},
            "batch": {"model": model, "input": ["the sea", "the shore"], "encoding_format": "base64"},
        },
        "/v1/score": {
            "pairs": {"model": model, "text_1": "Why is the sea salty?", "text_2": ["Rivers carry salt.", "Rye bread."]}
        },
        "/v1/rerank": {
            "best": {
                "model": model,
                "query": "Why is the sea salty?",
                "documents": ["A recipe for rye bread.", "Rivers carry salt into the sea."],
                "top_n": 1,
                "return_documents": True,
            }
        },
        "/v1/classify": {"labels": {"model": model, "input": "I liked the film. It was", "labels": ["good", "bad"]}},
        "/v1/tokenize": {
            "text": {"model": model, "text": "the sea", "return_token_strs": True},
            "chat": {"model": model, "messages": _HELLO},
        },
        "/v1/detokenize": {"ids": {"model": model, "tokens": [65, 66, 67]}},
    }
