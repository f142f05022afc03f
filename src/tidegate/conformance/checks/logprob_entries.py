"""Log-probabilities of an answer: which tokens they belong to, and what numbers they may be."""

import math
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import answer_of, usage_of
from tidegate.conformance.checks.generation import stream_chunks as chunks_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

TOLERANCE = 0.1
"""Two computations of the same token, alone and beside others, differ by rounding: less than this, as far as we saw."""
MASS_TOLERANCE = 1e-3
MAX_END_TOKENS = 2
"""Chat formats end a turn with a token or two, which are counted and have no text."""


def entries_of(exchange: Exchange) -> list[Any]:
    """Returns the entries of the first choice. Raises CannotTell where there are none: `has_entries` says so."""
    entries = answer_of(exchange).choice().logprobs
    if not entries:
        raise CannotTell("the answer has no logprobs")
    return entries


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _name(entry: Any) -> tuple[Any, str]:
    return at(entry, "token"), str(at(entry, "bytes"))


def _top(entry: Any) -> list[Any]:
    top = at(entry, "top_logprobs")
    return top if isinstance(top, list) else []


def has_entries(exchange: Exchange) -> Iterator[Fault]:
    """There are entries, each with token, logprob, bytes and top_logprobs, and so each alternative."""
    choice = answer_of(exchange).choice()
    if not choice.logprobs and choice.text:
        yield Fault("logprobs were asked for, and the answer has none")
    for position, entry in enumerate(choice.logprobs):
        faults = [*_entry_faults(entry, f"entry {position}: ")]
        if not isinstance(at(entry, "top_logprobs"), list):
            faults.append(Fault(f"entry {position}: top_logprobs is {at(entry, 'top_logprobs')!r}, expected a list"))
        for other in _top(entry):
            faults += _entry_faults(other, f"an alternative of entry {position}: ")
        if faults:
            yield faults[0]
            return


def _entry_faults(entry: Any, where: str) -> Iterator[Fault]:
    if not isinstance(at(entry, "token"), str):
        yield Fault(f"{where}token is {at(entry, 'token')!r}, expected a text")
    if not _number(at(entry, "logprob")):
        yield Fault(f"{where}logprob is {at(entry, 'logprob')!r}, expected a finite number")
    token_bytes = at(entry, "bytes")
    if token_bytes is not None and not (
        isinstance(token_bytes, list) and all(type(one) is int and 0 <= one <= 255 for one in token_bytes)
    ):
        yield Fault(f"{where}bytes is {token_bytes!r}, expected a list of bytes or null"[:160])


def has_no_entries(exchange: Exchange) -> Iterator[Fault]:
    """Where logprobs were not asked for there are no entries."""
    answer_of(exchange)
    for event, body in exchange.numbered_bodies:
        choices = at(body, "choices")
        for choice in choices if isinstance(choices, list) else []:
            if entries := at(choice, "logprobs", "content") or at(choice, "logprobs", "tokens"):
                yield Fault(f"logprobs were not asked for: {str(entries)[:80]}", event)
                return


def concatenates(exchange: Exchange) -> Iterator[Fault]:
    """The bytes of all entries, one after the other, are those of the content. A character that is cut off at the very
    end stands as U+FFFD in the text.
    """
    said = b""
    for entry in entries_of(exchange):
        token_bytes = at(entry, "bytes")
        said += bytes(token_bytes) if isinstance(token_bytes, list) else str(at(entry, "token")).encode()
    text = answer_of(exchange).text
    if said != text.encode() and said.decode("utf-8", "replace") != text:
        yield Fault(f"the tokens say {said.decode('utf-8', 'replace')[:80]!r}, the text is {text[:80]!r}")


def has_right_bytes(exchange: Exchange) -> Iterator[Fault]:
    """Where a token's bytes are whole characters, they are the token's text."""
    for position, entry in enumerate(entries_of(exchange)):
        token_bytes, token = at(entry, "bytes"), at(entry, "token")
        if not isinstance(token_bytes, list) or not isinstance(token, str):
            continue
        try:
            text = bytes(token_bytes).decode()
        except ValueError:
            continue
        if text != token:
            yield Fault(f"entry {position} is the token {token!r} with the bytes of {text!r}")
            return


def has_own_bytes(exchange: Exchange) -> Iterator[Fault]:
    """Every token has its bytes, also one that is only part of a character: all together are the text's."""
    for position, entry in enumerate(entries_of(exchange)):
        if not isinstance(at(entry, "bytes"), list):
            yield Fault(f"entry {position} has bytes {at(entry, 'bytes')!r}")
            return
    said = b"".join(bytes(at(entry, "bytes")) for entry in entries_of(exchange))
    if said != answer_of(exchange).text.encode():
        yield Fault(
            f"the bytes of the tokens are {said!r}, those of the text {answer_of(exchange).text.encode()!r}"[:200]
        )


def has_entry_per_token(exchange: Exchange) -> Iterator[Fault]:
    """One entry for each token that was generated; those that ended the answer may be without. Raises CannotTell where
    tokens went into reasoning: they are counted, and not of the content.
    """
    num_entries = len(entries_of(exchange))
    usage, choice = usage_of(exchange), answer_of(exchange).choice()
    counted = usage["completion_tokens"]
    if choice.reasoning or at(usage, "completion_tokens_details", "reasoning_tokens"):
        raise CannotTell("some of the tokens are reasoning")
    num_ends = 0 if choice.finish_reason == "length" else MAX_END_TOKENS
    if not counted - num_ends <= num_entries <= counted:
        yield Fault(f"{num_entries} entries for {counted} completion_tokens")


def has_top(exchange: Exchange, *, num_top: int, is_exact: bool = True) -> Iterator[Fault]:
    """Each entry has `num_top` alternatives. Where not `is_exact` some entries may have fewer, as OpenAI's may."""
    counts = [len(_top(entry)) for entry in entries_of(exchange)]
    if max(counts) > num_top:
        yield Fault(f"an entry has {max(counts)} top_logprobs, {num_top} were asked for")
    elif min(counts) < num_top and (is_exact or max(counts) < num_top):
        yield Fault(f"an entry has {min(counts)} top_logprobs, {num_top} were asked for")


def is_sorted(exchange: Exchange) -> Iterator[Fault]:
    """Alternatives stand in falling order of their logprobs, no token twice."""
    for position, entry in enumerate(entries_of(exchange)):
        values = [at(other, "logprob") for other in _top(entry)]
        if all(map(_number, values)) and values != sorted(values, reverse=True):
            yield Fault(f"top_logprobs of entry {position} are {values!r}, not in falling order")
            return
        tokens = [_name(other) for other in _top(entry)]
        if len(set(tokens)) < len(tokens):
            yield Fault(f"top_logprobs of entry {position} name a token twice: {tokens!r}"[:200])
            return


def is_in_range(exchange: Exchange) -> Iterator[Fault]:
    """Logprobs are logarithms of probabilities: at most 0, and those of one place together at most 1."""
    for position, entry in enumerate(entries_of(exchange)):
        values = [value for value in (at(other, "logprob") for other in [entry, *_top(entry)]) if _number(value)]
        if any(value > MASS_TOLERANCE for value in values):
            yield Fault(f"entry {position} has a logprob above 0: {max(values)!r}")
            return
        mass = sum(math.exp(value) for value in (at(other, "logprob") for other in _top(entry)) if _number(value))
        if mass > 1 + MASS_TOLERANCE:
            yield Fault(f"top_logprobs of entry {position} are probabilities of {mass:.4f} together")
            return


def has_chosen_on_top(exchange: Exchange) -> Iterator[Fault]:
    """A greedy answer is of the most likely tokens: each is among its alternatives, with the same logprob. Raises
    CannotTell where another is more likely: nothing forbids a server a penalty of its own.
    """
    for position, entry in enumerate(entries_of(exchange)):
        values = {_name(other): at(other, "logprob") for other in _top(entry)}
        own = at(entry, "logprob")
        if not values or not all(map(_number, [own, *values.values()])):
            raise CannotTell("there are no alternatives to look among")
        token = at(entry, "token")
        if _name(entry) not in values:
            yield Fault(f"entry {position} is {token!r}, which is not among its {len(values)} likeliest tokens")
        elif abs(values[_name(entry)] - own) > TOLERANCE:
            yield Fault(
                f"{token!r} has {own!r} in entry {position}, and {values[_name(entry)]!r} among its alternatives"
            )
        elif own < max(values.values()) - TOLERANCE:
            raise CannotTell(
                f"entry {position} is {token!r} with {own!r}, the likeliest token has {max(values.values())!r}: "
                "the server weighs tokens by more than these numbers, as with a penalty of its own"
            )


def has_same_entries(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """Streamed, an answer has the entries that it has whole: the same tokens, the same numbers but for rounding."""
    if answer_of(whole).text != answer_of(streamed).text:
        raise CannotTell("the server answers the same greedy request in two ways")
    expected, found = entries_of(whole), answer_of(streamed).choice().logprobs
    tokens = [[at(entry, "token") for entry in entries] for entries in (expected, found)]
    if tokens[0] != tokens[1]:
        yield Fault(f"streamed entries are of {tokens[1]!r}, whole ones of {tokens[0]!r}"[:300], ask=streamed.ask)
        return
    for position, (one, other) in enumerate(zip(expected, found, strict=True)):
        values = at(one, "logprob"), at(other, "logprob")
        if all(map(_number, values)) and abs(values[0] - values[1]) > TOLERANCE:
            yield Fault(f"entry {position} has {values[1]!r} streamed and {values[0]!r} whole", ask=streamed.ask)
            return


def travels_with_text(exchange: Exchange) -> Iterator[Fault]:
    """Entries come with the text that they are of: with every chunk, what the entries say so far has not run ahead of
    the text by more than a character, nor fallen behind it.
    """
    entries_of(exchange)
    text, said = b"", b""
    for event, chunk in chunks_of(exchange):
        for choice in chunk.get("choices") or []:
            content = at(choice, "delta", "content")
            text += content.encode() if isinstance(content, str) else b""
            for entry in at(choice, "logprobs", "content") or []:
                token_bytes = at(entry, "bytes")
                said += bytes(token_bytes) if isinstance(token_bytes, list) else str(at(entry, "token")).encode()
        if len(said) < len(text):
            yield Fault(f"the chunk's text has no entry: {text[len(said) :][:40]!r}", event)
            return


def has_same_first_entry(one: Exchange, other: Exchange) -> Iterator[Fault]:
    """The alternatives of the first token are as likely at any temperature: they are the model's own."""
    first, second = (entries_of(exchange)[0] for exchange in (one, other))
    values = [{at(top, "token"): at(top, "logprob") for top in _top(entry)} for entry in (first, second)]
    for token in values[0].keys() & values[1].keys():
        if abs(values[0][token] - values[1][token]) > TOLERANCE:
            yield Fault(f"{token!r} has {values[1][token]!r} at one temperature, {values[0][token]!r} at another")
            return
    if values[0] and values[0].keys() != values[1].keys():
        yield Fault(
            f"the likeliest first tokens are {sorted(values[1])!r}, at another temperature {sorted(values[0])!r}"
        )
