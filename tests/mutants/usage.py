"""What breaks token counts."""

from collections.abc import Callable, Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsValue, Heard, Mutant
from mutants.edits import Value, chunkwise, without


def _usage(edit: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Edits usage where there is one."""
    return lambda body: body | {"usage": edit(body["usage"])} if body.get("usage") else body


def _one_more_total(usage: Value) -> Value:
    return usage | {"total_tokens": usage["total_tokens"] + 1}


def _one_more_token(usage: Value) -> Value:
    return usage | {"completion_tokens": usage["completion_tokens"] + 1}


def _constant_prompt(usage: Value) -> Value:
    return usage | {"prompt_tokens": 20}


def _cached_above(usage: Value) -> Value:
    return usage | {"prompt_tokens_details": {"cached_tokens": usage["prompt_tokens"] + 16}}


class _CountsPerChoice(Mutant):
    says = "counts the prompt for each choice"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        num = len(value["choices"])
        return _usage(lambda usage: usage | {"prompt_tokens": usage["prompt_tokens"] * num})(value)


class _CountsOneChoice(Mutant):
    says = "counts the tokens of one choice"

    def _edit(self, heard: Heard) -> Callable[[Value], Value]:
        num = heard.json.get("n") or 1
        return _usage(lambda usage: usage | {"completion_tokens": usage["completion_tokens"] // num})

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return self._edit(heard)(value)

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        yield self._edit(heard)(chunk)


class _CountsFirstPrompt(Mutant):
    says = "counts the first prompt of a batch"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        prompt = heard.json["prompt"]
        if not isinstance(prompt, list):
            return value
        return _usage(lambda usage: usage | {"prompt_tokens": len(prompt[0].encode())})(value)


def _zero_last(chunk: Value, _: int) -> Iterable[Value]:
    is_last = chunk.get("choices") == []
    return [chunk | {"usage": chunk["usage"] | {"completion_tokens": 0}} if is_last else chunk]


MUTANTS: Mutants = {
    "usage.members": (
        EditsValue("tells no usage", lambda body: without(body, "usage")),
        EditsValue("tells null", lambda body: body | {"usage": None}),
        EditsValue("leaves total_tokens out", _usage(lambda usage: without(usage, "total_tokens"))),
    ),
    "usage.completions_members": (EditsValue("tells no usage", lambda body: without(body, "usage")),),
    "usage.total": (
        EditsValue("adds one", _usage(_one_more_total)),
        EditsChunks("adds one in streams", chunkwise(_usage(_one_more_total))),
    ),
    "usage.limit": (
        EditsValue("counts the token that it did not generate", _usage(_one_more_token)),
        EditsChunks("counts it in streams", chunkwise(_usage(_one_more_token))),
    ),
    "usage.prompt_grows": (EditsValue("counts prompts at a constant", _usage(_constant_prompt)),),
    "usage.details": (EditsValue("has more cached than there is", _usage(_cached_above)),),
    "usage.cached": (
        EditsValue(
            "leaves details out where nothing is cached",
            _usage(lambda usage: without(usage, "prompt_tokens_details")),
        ),
        EditsChunks(
            "leaves details out of streams", chunkwise(_usage(lambda usage: without(usage, "prompt_tokens_details")))
        ),
    ),
    "usage.choices": (_CountsPerChoice(), _CountsOneChoice()),
    "usage.choices_streamed": (_CountsOneChoice(),),
    "usage.prompts": (_CountsFirstPrompt(),),
    "usage.continuous": (
        EditsChunks(
            "tells it at the end only",
            lambda chunk, _: [chunk if chunk.get("choices") == [] else without(chunk, "usage")],
        ),
        EditsChunks("falls back to zero", _zero_last),
    ),
}
