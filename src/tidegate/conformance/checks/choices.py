"""Which choices came, and whether they are choices of their own."""

import math
from collections.abc import Iterator

from tidegate.conformance.answer import Choice
from tidegate.conformance.checks.generation import answer_of, stream_chunks, whole_body
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

MAX_CHANCE = 1e-4
"""What is as improbable as this on a right server is taken for a fault."""


def has_indices(exchange: Exchange, *, num_choices: int) -> Iterator[Fault]:
    """Exactly the choices 0 to num_choices - 1 came; in a whole answer each stands once."""
    answer_of(exchange)
    if exchange.is_stream:
        found = sorted({at(c, "index") for _, chunk in stream_chunks(exchange) for c in chunk.get("choices") or []})
    else:
        found = [at(choice, "index") for choice in whole_body(exchange)["choices"]]
    if sorted(found) != list(range(num_choices)):
        yield Fault(f"choices have index {', '.join(map(str, found))}; expected each of 0 to {num_choices - 1} once")


def are_same(whole: Exchange, again: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """At temperature 0 all choices say the same. Rounding may now and then tip a token between two that are as likely,
    hence twice: whole answers are at fault where both have choices that differ, a stream where neither has.
    """
    odd = [_odd_choice(exchange) for exchange in (whole, again, streamed)]
    if odd[0] and odd[1]:
        yield Fault(odd[0], ask=whole.ask)
    elif odd[0] or odd[1]:
        raise CannotTell("the server answers the same greedy request in two ways")
    elif odd[2]:
        yield Fault(odd[2], ask=streamed.ask)


def _odd_choice(exchange: Exchange) -> str | None:
    answer = answer_of(exchange)
    for index, choice in sorted(answer.choices.items()):
        if choice.text != answer.text:
            return f"greedy choice {index} says {choice.text[:60]!r}, choice 0 says {answer.text[:60]!r}"
    return None


def chance_of(choice: Choice, temperature: float) -> float:
    """Returns a bound on the probability that sampling at `temperature` >= 1 gives this choice's tokens again.

    From the entries of logprobs with at least one alternative: a token that is the most probable one is no more so at a
    higher temperature than at 1; another one is as improbable beside it as the two logprobs say. Raises CannotTell
    without entries.
    """
    if not choice.logprobs:
        raise CannotTell("without logprobs nobody can say how improbable equal answers are")
    total = 0.0
    for entry in choice.logprobs:
        own, best = at(entry, "logprob"), at(entry, "top_logprobs", 0, "logprob")
        if not isinstance(own, int | float) or not isinstance(best, int | float):
            raise CannotTell("an entry of logprobs has no number")
        if own >= best:
            total += min(own, 0.0)
        else:
            ratio = math.exp((own - best) / temperature)
            total += math.log(ratio / (1 + ratio)) if ratio else -700.0
    return math.exp(max(total, -700.0))


def _differ(choices: list[Choice], temperature: float, what: str) -> Iterator[Fault]:
    if len({choice.text for choice in choices}) > 1:
        return
    chance = chance_of(choices[0], temperature) ** (len(choices) - 1)
    if chance > MAX_CHANCE:
        raise CannotTell(
            f"all {len(choices)} answers are the same, which by chance happens once in {1 / chance:.0f} times"
        )
    yield Fault(f"{what} gave the same text; by chance that happens once in {1 / max(chance, 1e-300):.0e} times")


def are_drawn_each(exchange: Exchange) -> Iterator[Fault]:
    """Sampled choices are not copies of one. Needs logprobs with one alternative, to say how improbable that is."""
    choices = list(answer_of(exchange).choices.values())
    if len(choices) < 2:
        raise CannotTell("there are no two choices")
    yield from _differ(choices, exchange.request_json["temperature"], f"{len(choices)} sampled choices")


def differ_by_seed(*exchanges: Exchange) -> Iterator[Fault]:
    """Answers to different seeds are not all the same."""
    choices = [answer_of(exchange).choice() for exchange in exchanges]
    yield from _differ(choices, exchanges[0].request_json["temperature"], f"{len(choices)} different seeds")
