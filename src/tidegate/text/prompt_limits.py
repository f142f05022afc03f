"""Lengths of prompt and output against the context (CONTRACT.md section 4).

Nothing is ever clamped in silence: a number that the caller gave is honoured or refused. Only where the caller gave
none do we choose: what is left of the context, up to the server's own maximum.
"""

from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact


def resolve_max_tokens(
    num_prompt_tokens: int,
    requested: int | None,
    *,
    context_length: int,
    max_output_tokens: int | None = None,
    prompt_param: str = "messages",
    tokens_param: str = "max_tokens",
) -> int:
    """Returns how many tokens may be generated for one choice.

    `requested` is the caller's own number, None where absent; 0 means that only the prompt is read (completions with
    `echo`). `context_length` bounds prompt and output together.

    Raises ContextLengthExceeded with the limit `context_length` (its `actual` is prompt plus requested output, at
    least one token where none was requested), and InvalidValue with the limit `max_output_tokens`.
    """
    room = context_length - num_prompt_tokens
    wanted = 1 if requested is None else requested
    if wanted > room:
        raise _too_long(num_prompt_tokens, requested, context_length, prompt_param, tokens_param)
    if requested is None:
        return room if max_output_tokens is None else min(room, max_output_tokens)
    if max_output_tokens is not None and requested > max_output_tokens:
        raise InvalidValue(
            f"{tokens_param} is {requested}; this server generates at most {max_output_tokens} tokens for a choice",
            param=tokens_param,
            limit=LimitFact("max_output_tokens", max_output_tokens, requested),
        )
    return requested


def _too_long(
    num_prompt_tokens: int, requested: int | None, context_length: int, prompt_param: str, tokens_param: str
) -> ContextLengthExceeded:
    fits_alone = num_prompt_tokens < context_length
    if requested is None or not fits_alone:
        message = f"the prompt has {num_prompt_tokens} tokens and the model's context is {context_length}"
        if num_prompt_tokens == context_length:
            message += ", which leaves no room for a token of output"
    else:
        message = (
            f"the prompt has {num_prompt_tokens} tokens and {tokens_param} is {requested}: together more than"
            f" the model's context of {context_length}"
        )
    return ContextLengthExceeded(
        message,
        param=tokens_param if fits_alone and requested is not None else prompt_param,
        limit=LimitFact("context_length", context_length, num_prompt_tokens + (1 if requested is None else requested)),
    )


def min_num_tokens(text: str, longest_token_bytes: int) -> int:
    """Returns a number of tokens that `text` cannot stay below, without tokenizing it.

    No token stands for more than `longest_token_bytes` bytes. So a text that is hopelessly too long is refused at the
    cost of its length, before any tokenizer sees it. Holds for tokenizers that keep every byte of their input.
    """
    return -(-len(text.encode("utf-8", "replace")) // longest_token_bytes)
