"""The routes that turn text into token ids and back."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import read_answer
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def token_ids(exchange: Exchange) -> list[int]:
    """Returns the ids of an answer of the tokenize route. Raises CannotTell where there are none."""
    tokens = at(exchange.json, "tokens")
    if exchange.status != 200 or not isinstance(tokens, list) or any(type(token) is not int for token in tokens):
        raise CannotTell(f"no token ids came (status {exchange.status})")
    return tokens


def has_token_shape(exchange: Exchange) -> Iterator[Fault]:
    """`tokens` are non-negative integers, `count` is their number, and `max_model_len` is a number."""
    tokens, count = at(exchange.json, "tokens"), at(exchange.json, "count")
    if not isinstance(tokens, list) or any(type(token) is not int or token < 0 for token in tokens):
        yield Fault(f"tokens are {str(tokens)[:150]}, expected a list of integers")
    elif count != len(tokens) or type(count) is not int:
        yield Fault(f"count is {count!r} of {len(tokens)} tokens")
    if type(at(exchange.json, "max_model_len")) is not int:
        yield Fault(f"max_model_len is {at(exchange.json, 'max_model_len')!r}")


def text_comes_back(exchange: Exchange, *, text: str) -> Iterator[Fault]:
    """The detokenize route says the text, as `text` (or `prompt`, as other servers name it)."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200")
        return
    found = at(exchange.json, "text")
    found = at(exchange.json, "prompt") if found is MISSING else found
    if found != text:
        yield Fault(f"the text came back as {str(found)[:150]!r}, expected {text[:150]!r}")


def count_is_usage(tokenized: Exchange, generated: Exchange) -> Iterator[Fault]:
    """The number of tokens is the generation's `usage.prompt_tokens`."""
    told = at(read_answer(generated).usage, "prompt_tokens")
    if len(token_ids(tokenized)) != told:
        yield Fault(f"{len(token_ids(tokenized))} tokens, and usage.prompt_tokens is {told!r}", ask="generated")


def usage_is_same(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Both generations read the same number of prompt tokens."""
    told = [at(read_answer(exchange).usage, "prompt_tokens") for exchange in (first, second)]
    if told[0] != told[1] or type(told[0]) is not int:
        yield Fault(f"usage.prompt_tokens is {told[0]!r} for the text, {told[1]!r} for its token ids")


def special_tokens_are_around(bare: Exchange, full: Exchange) -> Iterator[Fault]:
    """The tokens without special ones are part of those with them."""
    inner, outer = token_ids(bare), token_ids(full)
    starts = range(len(outer) - len(inner) + 1)
    if not any(outer[start : start + len(inner)] == inner for start in starts):
        yield Fault(f"the tokens {inner[:20]} are not among {outer[:20]}")


def is_not_one_token(exchange: Exchange) -> Iterator[Fault]:
    """The text has become several tokens: it was read as text, and not as a control token."""
    if len(token_ids(exchange)) < 2:
        yield Fault(f"the spelling of a control token became the token {token_ids(exchange)}")


def pieces_join_to(exchange: Exchange, *, text: str) -> Iterator[Fault]:
    """`pieces`, in hex, join to the text's bytes; `token_strs` are as many as tokens."""
    pieces, texts = at(exchange.json, "pieces"), at(exchange.json, "token_strs")
    num_tokens = len(token_ids(exchange))
    if not isinstance(texts, list) or len(texts) != num_tokens:
        yield Fault(f"token_strs are {str(texts)[:100]}, expected {num_tokens} texts")
    if not isinstance(pieces, list) or len(pieces) != num_tokens or _joined(pieces) != text.encode():
        yield Fault(f"pieces are {str(pieces)[:100]}, expected {num_tokens} that join to {text!r}")


def _joined(pieces: list[Any]) -> bytes | None:
    try:
        return bytes.fromhex("".join(pieces))
    except (TypeError, ValueError):
        return None
