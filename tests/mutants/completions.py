"""What breaks completions as a whole."""

from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsRequest, EditsValue, Ignores, Mutant
from mutants.edits import each_choice, set_member, without

_ECHOED = "The colours of the rainbow are red,"


def _one_more(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"max_tokens": body["max_tokens"] + 1}


def _first_prompt(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"prompt": body["prompt"][:1]}


def _flat_prompt(body: dict[str, Any]) -> dict[str, Any]:
    lists = body["prompt"]
    return body | {"prompt": [token for ids in lists for token in ids]}


def _begins_with_a_token(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"prompt": [1, *body["prompt"]]}


def _in_another_order(body: dict[str, Any]) -> dict[str, Any]:
    """Index j * prompts + i, as where samples are the outer loop."""
    choices = body["choices"]
    num_prompts = 2
    num_samples = len(choices) // num_prompts
    for choice in choices:
        prompt, sample = divmod(choice["index"], num_samples)
        choice["index"] = sample * num_prompts + prompt
    return body


class _EchoesOnlyWhole(Mutant):
    says = "does not echo in streams"

    def hear(self, heard: Any) -> Any:
        return heard.with_json(without(heard.json, "echo")) if heard.is_stream else heard


MUTANTS: Mutants = {
    "completions.object": (
        EditsValue("says that it is a chat completion", set_member("object", "chat.completion")),
        EditsValue("has a message in place of the text", each_choice(lambda choice: without(choice, "text"))),
    ),
    "completions.nullable_members": (
        EditsValue("leaves null logprobs out", each_choice(lambda choice: without(choice, "logprobs"))),
    ),
    "completions.max_tokens": (EditsRequest("counts from zero", _one_more), Ignores(("max_tokens",))),
    "completions.prompts": (EditsRequest("answers only the first prompt", _first_prompt),),
    "completions.prompt_order": (EditsValue("numbers samples before prompts", _in_another_order),),
    "completions.token_prompts": (EditsRequest("takes all lists for one prompt", _flat_prompt),),
    "completions.token_prompt_exact": (EditsRequest("puts a token before it", _begins_with_a_token),),
    "completions.echo": (
        Ignores(("echo",)),
        EditsValue(
            "joins spaces",
            each_choice(lambda choice: choice | {"text": choice["text"].replace("  ", " ")}),
        ),
    ),
    "completions.echo_streamed": (
        _EchoesOnlyWhole(),
        EditsChunks(
            "echoes the prompt in each chunk",
            lambda chunk, _: [each_choice(lambda choice: choice | {"text": _ECHOED + choice["text"]})(chunk)],
        ),
    ),
    "completions.echo_alone": (
        EditsRequest("generates one token all the same", lambda body: body | {"max_tokens": 1}),
    ),
    "completions.suffix": (Ignores(("suffix",)),),
}
