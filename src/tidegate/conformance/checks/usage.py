"""Token counts: their arithmetic, their bounds, and how those of several answers compare."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import answer_of, stream_chunks, usage_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_PARTS = {"prompt_tokens_details": "prompt_tokens", "completion_tokens_details": "completion_tokens"}
"""Members that break a count down, and the count that none of their own counts may be above."""


def _require(usage: Any) -> Iterator[Fault]:
    if not isinstance(usage, dict):
        yield Fault("no usage is told")
        return
    for name in COUNTS:
        if type(usage.get(name)) is not int or usage[name] < 0:
            yield Fault(f"usage.{name} is {usage.get(name, MISSING)!r}, expected a whole number from 0")


def has_usage(exchange: Exchange) -> Iterator[Fault]:
    """Usage is told, with its three counts as whole numbers."""
    yield from _require(answer_of(exchange).usage)


def adds_up(exchange: Exchange) -> Iterator[Fault]:
    """total_tokens is prompt_tokens and completion_tokens together."""
    usage = usage_of(exchange)
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    if usage["total_tokens"] != total:
        yield Fault(f"total_tokens is {usage['total_tokens']}; prompt and completion are {total} together")


def has_details_within(exchange: Exchange) -> Iterator[Fault]:
    """No part of a count, cached or reasoning tokens among them, is above the count itself."""
    usage = usage_of(exchange)
    for member, whole in _PARTS.items():
        parts = usage.get(member)
        for name, value in parts.items() if isinstance(parts, dict) else ():
            if value is not None and not (type(value) is int and 0 <= value <= usage[whole]):
                yield Fault(f"usage.{member}.{name} is {value!r} of {usage[whole]} {whole}")


def tells_cached_tokens(exchange: Exchange) -> Iterator[Fault]:
    """usage.prompt_tokens_details.cached_tokens is always told."""
    found = at(usage_of(exchange), "prompt_tokens_details", "cached_tokens")
    if type(found) is not int:
        yield Fault(f"usage.prompt_tokens_details.cached_tokens is {found!r}, expected a whole number")


def is_cut_at(exchange: Exchange, *, num_tokens: int) -> Iterator[Fault]:
    """Each choice that was cut has exactly `num_tokens` tokens and says `length`. Raises CannotTell where the model
    ended by itself before.
    """
    answer = answer_of(exchange)
    usage = usage_of(exchange)
    bound = num_tokens * len(answer.choices)
    found = usage["completion_tokens"]
    if found > bound:
        yield Fault(f"completion_tokens is {found}, at most {bound} were asked for")
    elif {choice.finish_reason for choice in answer.choices.values()} != {"length"}:
        raise CannotTell("the model ended by itself before it was cut")
    elif found != bound:
        yield Fault(f"finish_reason is 'length' after {found} of {bound} tokens")


def says_that_it_was_cut(short: Exchange, longer: Exchange) -> Iterator[Fault]:
    """Where the same request with a higher limit says more, the shorter answer was cut, and says `length`."""
    cut, whole = answer_of(short).choice(), answer_of(longer).choice()
    if not (whole.text.startswith(cut.text) and len(whole.text) > len(cut.text)):
        raise CannotTell("the answer with the higher limit does not begin with the shorter one and go on")
    if cut.finish_reason != "length":
        yield Fault(f"finish_reason is {cut.finish_reason!r}; with a higher limit the answer goes on", ask=short.ask)


def counts_at_most(exchange: Exchange, *, num_tokens: int) -> Iterator[Fault]:
    """No more than `num_tokens` tokens were generated."""
    found = usage_of(exchange)["completion_tokens"]
    if found > num_tokens:
        yield Fault(f"completion_tokens is {found}, at most {num_tokens} were asked for")


def counts_growing_prompts(*exchanges: Exchange) -> Iterator[Fault]:
    """Each prompt has more tokens than the one before: what was added was read."""
    counts = [usage_of(exchange)["prompt_tokens"] for exchange in exchanges]
    for before, after, exchange in zip(counts, counts[1:], exchanges[1:], strict=False):
        if after <= before:
            yield Fault(
                f"prompt_tokens is {after}, and {before} without what was added to the prompt", ask=exchange.ask
            )


def counts_same_prompt(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Both prompts have the same number of tokens."""
    counts = [usage_of(exchange)["prompt_tokens"] for exchange in (first, second)]
    if counts[0] != counts[1]:
        yield Fault(f"prompt_tokens is {counts[1]}, and {counts[0]} for the same prompt put differently")


def counts_prompt_tokens(exchange: Exchange, *, num_tokens: int) -> Iterator[Fault]:
    """The prompt has exactly this many tokens."""
    found = usage_of(exchange)["prompt_tokens"]
    if found != num_tokens:
        yield Fault(f"prompt_tokens is {found}, the prompt has {num_tokens} token ids")


def sums_choices(one: Exchange, several: Exchange) -> Iterator[Fault]:
    """The prompt is counted once however many choices it has, and the tokens of all choices are counted. `one`: the
    same request for a single choice.
    """
    if usage_of(one)["prompt_tokens"] != usage_of(several)["prompt_tokens"]:
        counts = usage_of(several)["prompt_tokens"], usage_of(one)["prompt_tokens"]
        yield Fault(f"prompt_tokens is {counts[0]} for several choices and {counts[1]} for one")
        return
    choices = answer_of(several).choices
    if {choice.finish_reason for choice in choices.values()} != {"length"}:
        raise CannotTell("not every choice was cut by its token limit, so their tokens cannot be counted from outside")
    limit = several.request_json["max_tokens"]
    found = usage_of(several)["completion_tokens"]
    if found != limit * len(choices):
        yield Fault(f"completion_tokens is {found}; {len(choices)} choices of {limit} tokens each were generated")


def sums_prompts(first: Exchange, second: Exchange, both: Exchange) -> Iterator[Fault]:
    """prompt_tokens of a request with two prompts are those of both, asked alone."""
    alone = usage_of(first)["prompt_tokens"] + usage_of(second)["prompt_tokens"]
    found = usage_of(both)["prompt_tokens"]
    if found != alone:
        yield Fault(f"prompt_tokens is {found} for two prompts, {alone} when each is asked alone")


def counts_up(exchange: Exchange) -> Iterator[Fault]:
    """With continuous usage every chunk tells it; completion_tokens never falls, and ends at what is told last."""
    last = 0
    for event, chunk in stream_chunks(exchange):
        usage = chunk.get("usage")
        if faults := list(_require(usage)):
            yield Fault(faults[0].says, event)
            return
        assert isinstance(usage, dict)
        if usage["completion_tokens"] < last:
            yield Fault(f"completion_tokens falls from {last} to {usage['completion_tokens']}", event)
        last = usage["completion_tokens"]
