"""Log-probabilities of completions: parallel lists, one place for each token."""

import math
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.checks.logprob_entries import TOLERANCE
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

LISTS = ("tokens", "token_logprobs", "text_offset")


def lists_of(exchange: Exchange) -> dict[str, list[Any]]:
    """Returns the four lists, chunks put together. Raises CannotTell where there are none."""
    parts = answer_of(exchange).choice().completion_logprobs
    if not parts:
        raise CannotTell("the completion has no logprobs")
    joined: dict[str, list[Any]] = {name: [] for name in (*LISTS, "top_logprobs")}
    for part in parts:
        for name in joined:
            found = at(part, name)
            joined[name] += found if isinstance(found, list) else []
    return joined


def has_lists(exchange: Exchange) -> Iterator[Fault]:
    """tokens, token_logprobs and text_offset are lists of one length; top_logprobs, where not null, has that length."""
    answer = answer_of(exchange)
    if not answer.choice().completion_logprobs and answer.text:
        yield Fault("logprobs were asked for, and the completion has no lists of them")
    for part in answer.choice().completion_logprobs:
        lengths = {name: len(found) if isinstance(found := at(part, name), list) else None for name in LISTS}
        if None in lengths.values() or len(set(lengths.values())) > 1:
            yield Fault(f"the lists have lengths {lengths!r}; they must have one length")
            return
        top = at(part, "top_logprobs")
        if isinstance(top, list) and len(top) != lengths["tokens"]:
            yield Fault(f"top_logprobs has {len(top)} maps for {lengths['tokens']} tokens")
        yield from _value_faults(part)


def _value_faults(part: Any) -> Iterator[Fault]:
    for value in at(part, "token_logprobs"):
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value <= TOLERANCE):
            yield Fault(f"token_logprobs holds {value!r}; it must be a number of at most 0, or null")
            return
    for offset in at(part, "text_offset"):
        if type(offset) is not int or offset < 0:
            yield Fault(f"text_offset holds {offset!r}; it must be a whole number from 0")
            return


def says_text(exchange: Exchange) -> Iterator[Fault]:
    """The tokens, one after the other, are the text. Parts of characters stand as U+FFFD: then nobody can tell."""
    tokens = "".join(map(str, lists_of(exchange)["tokens"]))
    if "\ufffd" in tokens:
        raise CannotTell("some tokens are parts of characters")
    if tokens != answer_of(exchange).text:
        yield Fault(f"the tokens say {tokens[:80]!r}, the text is {answer_of(exchange).text[:80]!r}")


def has_steady_offsets(exchange: Exchange) -> Iterator[Fault]:
    """Each offset is that of the token before and its length further on."""
    lists = lists_of(exchange)
    tokens, offsets = lists["tokens"], lists["text_offset"]
    if any("\ufffd" in str(token) for token in tokens):
        raise CannotTell("some tokens are parts of characters")
    for position in range(1, min(len(tokens), len(offsets))):
        expected = offsets[position - 1] + len(tokens[position - 1])
        if offsets[position] != expected:
            yield Fault(f"text_offset of token {position} is {offsets[position]}, expected {expected}")
            return


def begins_at(exchange: Exchange, *, offset: int) -> Iterator[Fault]:
    """The first token's offset: characters of prompt and completion together, before it."""
    found = lists_of(exchange)["text_offset"][:1]
    if found != [offset]:
        yield Fault(f"the first text_offset is {found}, expected {offset}")


def has_maps(exchange: Exchange, *, num_top: int) -> Iterator[Fault]:
    """Each place has a map of its `num_top` likeliest tokens, and perhaps the chosen one; no place is without."""
    lists = lists_of(exchange)
    for position, value in enumerate(lists["top_logprobs"]):
        if value is None and lists["token_logprobs"][position] is None:
            continue  # the first token of an echoed prompt has no probability
        if not isinstance(value, dict) or not 1 <= len(value) <= num_top + 1:
            yield Fault(f"top_logprobs of token {position} is {value!r}; {num_top} were asked for"[:200])
            return
    if not lists["top_logprobs"]:
        yield Fault(f"top_logprobs is empty; {num_top} were asked for at each token")


def has_same_lists(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """Streamed, a completion has the tokens, offsets and numbers that it has whole."""
    if answer_of(whole).text != answer_of(streamed).text:
        raise CannotTell("the server answers the same greedy request in two ways")
    expected, found = lists_of(whole), lists_of(streamed)
    for name in ("tokens", "text_offset"):
        if expected[name] != found[name]:
            yield Fault(f"{name} are {found[name]!r} streamed and {expected[name]!r} whole"[:300], ask=streamed.ask)
            return
    for position, values in enumerate(zip(expected["token_logprobs"], found["token_logprobs"], strict=True)):
        if None not in values and abs(values[0] - values[1]) > TOLERANCE:
            yield Fault(f"token {position} has {values[1]!r} streamed and {values[0]!r} whole", ask=streamed.ask)
            return
