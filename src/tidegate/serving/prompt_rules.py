"""What text or tokens a request brings: the prompts of a completion, and the one source of a tokenize request."""

from collections.abc import Sequence

from tidegate.contract.bounds import Limits, over_limit
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.tokenize import TokenizeRequest
from tidegate.errors import InvalidValue, MissingField
from tidegate.serving.message_rules import check_continuation, check_messages, check_template, refuse_media
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.sampling_rules import check_token_ids
from tidegate.serving.tool_rules import check_tools

Prompt = str | list[int]
Prompts = str | list[int | str | list[int]]
"""As callers give them: one text, one list of ids, or a list of either."""
MAX_TOKENIZE_CHARACTERS = 4 * 1024 * 1024
"""Of a text to tokenize: no context bounds it, and every token of it becomes part of the answer."""


def prompts_of(request: CompletionRequest, *, vocab_size: int) -> list[Prompt]:
    """Returns the prompts of a completion; see `read_prompts`."""
    return read_prompts(request.prompt, "prompt", vocab_size=vocab_size)


def read_prompts(prompt: Prompts, name: str, *, vocab_size: int) -> list[Prompt]:
    """Returns the prompts in order: a list of numbers is one prompt. None is empty, every id is in the vocabulary.

    Raises InvalidValue with `param` `name`, or `name[i]` for the first wrong entry of a list.
    """
    if isinstance(prompt, str):
        prompts: list[Prompt] = [prompt]
    elif set(map(type, prompt)) == {int}:
        prompts = [[entry for entry in prompt if isinstance(entry, int)]]
    else:
        prompts = []
        for index, entry in enumerate(prompt):
            if isinstance(entry, int):
                param = f"{name}[{index}]"
                raise InvalidValue(f"{param}: a number among texts or lists of numbers", param=param)
            prompts.append(entry)
    if not prompts:
        raise InvalidValue(f"{name}: must have at least 1 entry", param=name)
    for index, entry in enumerate(prompts):
        param = name if len(prompts) == 1 else f"{name}[{index}]"
        if not entry:
            raise InvalidValue(f"{param}: an empty prompt gives the model nothing to read", param=param)
        if not isinstance(entry, str):
            check_token_ids(param, entry, vocab_size)
    return prompts


def num_prompts(request: CompletionRequest) -> int:
    """Returns how many prompts a request has, without looking into them."""
    return count_prompts(request.prompt)


def count_prompts(prompt: Prompts) -> int:
    """The same for the prompts by themselves."""
    return 1 if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)) else len(prompt)


def check_prompt_counts(request: CompletionRequest, limits: Limits) -> None:
    """`prompts` bounds the list; `choices` bounds prompts times `n` as soon as `n` is above 1."""
    count, n = num_prompts(request), request.n or 1
    if count > limits.prompts:
        raise over_limit("prompt", "prompts", value=limits.prompts, actual=count)
    if n > 1 and count * n > limits.choices:
        raise over_limit("n", "choices", value=limits.choices, actual=count * n)


def check_tokenize(request: TokenizeRequest, policy: RequestPolicy) -> None:
    """Raises InvalidValue or MissingField unless exactly one of `prompt`, `text`, `messages` is given, well formed.

    Raises UnsupportedParameter for media parts.
    """
    given = [name for name in ("prompt", "text", "messages") if getattr(request, name) is not None]
    if not given:
        raise MissingField("one of prompt, text and messages is required", param="prompt")
    if len(given) > 1:
        raise InvalidValue(f"{given[1]}: excludes {given[0]}", param=given[1])
    if request.messages is None:
        actual = len(text_to_tokenize(request) or "")
        if actual > MAX_TOKENIZE_CHARACTERS:
            raise over_limit(given[0], "tokenize_characters", value=MAX_TOKENIZE_CHARACTERS, actual=actual)
        return
    check_messages(request.messages, policy)
    check_template(request, policy)
    check_continuation(request)
    check_tools(request.tools or [], policy)
    refuse_media(request.messages)


def text_to_tokenize(request: TokenizeRequest) -> str | None:
    """Returns the text of a checked request; None when it brings messages."""
    return request.prompt if request.prompt is not None else request.text


def check_detokenize(tokens: Sequence[int], vocab_size: int) -> None:
    """Raises InvalidValue when one of `tokens` is not in the vocabulary."""
    check_token_ids("tokens", tokens, vocab_size)
