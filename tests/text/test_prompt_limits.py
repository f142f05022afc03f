"""Prompt and output against the context: honoured or refused, never clamped."""

import pytest

from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact
from tidegate.text.prompt_limits import min_num_tokens, resolve_max_tokens

# prompt, requested, context, server's maximum, granted
GRANTED = [
    (10, None, 100, None, 90),
    (10, None, 100, 50, 50),
    (10, None, 100, 95, 90),
    (99, None, 100, None, 1),
    (10, 90, 100, None, 90),
    (10, 1, 100, 1, 1),
    (10, 0, 100, 50, 0),
    (100, 0, 100, None, 0),
]


@pytest.mark.parametrize(("prompt", "requested", "context", "maximum", "granted"), GRANTED)
def test_what_fits_is_granted(
    prompt: int, requested: int | None, context: int, maximum: int | None, granted: int
) -> None:
    assert resolve_max_tokens(prompt, requested, context_length=context, max_output_tokens=maximum) == granted


# prompt, requested, context, param, actual
REFUSED = [
    (10, 91, 100, "max_tokens", 101),
    (100, None, 100, "messages", 101),
    (101, None, 100, "messages", 102),
    (101, 0, 100, "messages", 101),
    (100, 1, 100, "messages", 101),
    (5000, 10, 100, "messages", 5010),
]


@pytest.mark.parametrize(("prompt", "requested", "context", "param", "actual"), REFUSED)
def test_what_does_not_fit_the_context_is_refused_with_numbers(
    prompt: int, requested: int | None, context: int, param: str, actual: int
) -> None:
    with pytest.raises(ContextLengthExceeded) as caught:
        resolve_max_tokens(prompt, requested, context_length=context, max_output_tokens=50)
    assert caught.value.param == param
    assert caught.value.limit == LimitFact("context_length", context, actual)
    assert str(prompt) in caught.value.message


def test_more_output_than_the_server_allows_is_refused_not_clamped() -> None:
    with pytest.raises(InvalidValue) as caught:
        resolve_max_tokens(10, 60, context_length=100, max_output_tokens=50, tokens_param="max_completion_tokens")
    assert caught.value.param == "max_completion_tokens"
    assert caught.value.limit == LimitFact("max_output_tokens", 50, 60)


def test_names_of_the_fields_are_the_callers() -> None:
    with pytest.raises(ContextLengthExceeded) as caught:
        resolve_max_tokens(200, None, context_length=100, prompt_param="prompt")
    assert caught.value.param == "prompt"


@pytest.mark.parametrize(("text", "longest", "least"), [("", 4, 0), ("abcd", 4, 1), ("abcde", 4, 2), ("é" * 4, 3, 3)])
def test_a_text_has_at_least_as_many_tokens_as_the_longest_token_allows(text: str, longest: int, least: int) -> None:
    assert min_num_tokens(text, longest) == least
