"""What became of the prompt: echoed, mapped to its choices, read whole."""

from collections.abc import Iterator

from tidegate.conformance.checks.generation import answer_of, usage_of
from tidegate.conformance.honest_refusal import describe_refusal
from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange


def echoes(exchange: Exchange) -> Iterator[Fault]:
    """Each choice's text begins with the prompt, character for character."""
    prompt = exchange.request_json["prompt"]
    for index, choice in sorted(answer_of(exchange).choices.items()):
        if not choice.text.startswith(prompt):
            yield Fault(f"choice {index} begins {choice.text[: len(prompt) + 10]!r}, the prompt is {prompt!r}")


def echoes_only(exchange: Exchange) -> Iterator[Fault]:
    """The text is the prompt and nothing else, and no token was generated."""
    prompt = exchange.request_json["prompt"]
    if answer_of(exchange).text != prompt:
        yield Fault(f"the text is {answer_of(exchange).text[:100]!r}, the prompt is {prompt!r}")
    if usage_of(exchange)["completion_tokens"] != 0:
        yield Fault(f"completion_tokens is {usage_of(exchange)['completion_tokens']}, expected 0")


def numbers_prompts(exchange: Exchange) -> Iterator[Fault]:
    """Choice j of prompt i has index i * n + j: its echoed text begins with prompt i."""
    prompts = exchange.request_json["prompt"]
    num_choices = exchange.request_json.get("n", 1)
    choices = answer_of(exchange).choices
    for index in range(len(prompts) * num_choices):
        if index in choices and not choices[index].text.startswith(prompts[index // num_choices]):
            yield Fault(
                f"choice {index} begins {choices[index].text[:40]!r}; prompt {index // num_choices} is "
                f"{prompts[index // num_choices]!r}"
            )


def reads_or_refuses(plain: Exchange, with_field: Exchange, *, field: str) -> Iterator[Fault]:
    """Either the request is honestly refused, or the field is read: the prompt has more tokens than without it."""
    if describe_refusal(with_field) is not None:
        return
    before, found = usage_of(plain)["prompt_tokens"], usage_of(with_field)["prompt_tokens"]
    if found <= before:
        yield Fault(f"{field} is accepted and not read: prompt_tokens is {found} with it and {before} without")
