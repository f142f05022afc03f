"""Routing: which engine of a pool gets the next request.

Decides by what each engine owes (`outstanding.py`), in shares of its rows, so that an engine with twice the rows gets
twice the work. What an engine has cached of the prompt already is work that it need not do, and counts as such: so a
prompt goes to its cache exactly where that is worth more than the difference in load. Between equals its home
(`prefix_hash.affinity`) decides, which is the same in every server; for a prompt too short to have one they take turns.

- LEAST_TOKENS: the least work after this request would be in.
- PREFIX_FIRST: the longest cached beginning, or else its home, as long as that engine owes no more than `load_factor`
  times the mean of all, and this request, in shares of rows; otherwise as LEAST_TOKENS among the others.

An engine with a free row goes before one without: a request there waits for nobody.

The bound. While engines work at one speed, no engine of LEAST_TOKENS owes more than the largest request above any
other's; with PREFIX_FIRST at most `load_factor` times the mean, and two such requests. Does not know health, prompts,
time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tidegate.engines.pool.prefix_hash import affinity


class Routing(Enum):
    """What comes first."""

    LEAST_TOKENS = "least_tokens"
    PREFIX_FIRST = "prefix_first"


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """`load_factor` counts for PREFIX_FIRST only; at least 1."""

    routing: Routing = Routing.LEAST_TOKENS
    load_factor: float = 1.25

    def __post_init__(self) -> None:
        if self.load_factor < 1:
            raise ValueError(f"load_factor {self.load_factor} is below 1")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An engine that may get the request. `num_tokens` and `num_sequences` are what it has; `num_rows` at least 1.
    `num_before` requests were given to it before.
    """

    name: str
    num_tokens: int
    num_sequences: int
    num_rows: int
    num_matched_tokens: int = 0
    num_before: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be placed: its prompt, what it may generate over all choices, and its beginning's first hash."""

    num_prompt_tokens: int
    num_output_tokens: int
    prefix: bytes | None = None


def rank(candidates: Sequence[Candidate], work: Work, rule: RoutingRule) -> list[Candidate]:
    """Returns the candidates, the best first; the others are for when it refuses."""
    if len(candidates) < 2:
        return list(candidates)
    homes = {one.name: affinity(work.prefix, one.name) if work.prefix is not None else b"" for one in candidates}

    def by_load(one: Candidate) -> tuple[bool, float, int, bytes, int, str]:
        load = (one.num_tokens + _new_tokens(one, work)) / one.num_rows
        is_full, home = one.num_sequences >= one.num_rows, _descending(homes[one.name])
        return (is_full, load, -one.num_matched_tokens, home, one.num_before, one.name)

    by_load_first = sorted(candidates, key=by_load)
    if rule.routing is Routing.LEAST_TOKENS or work.prefix is None:
        return by_load_first
    limit = rule.load_factor * sum(one.num_tokens for one in candidates) / sum(one.num_rows for one in candidates)

    def is_within(one: Candidate) -> bool:
        bound = limit * one.num_rows + _new_tokens(one, work)
        return one.num_sequences < one.num_rows and one.num_tokens <= bound

    near = [one for one in by_load_first if is_within(one)]
    near.sort(key=lambda one: (-one.num_matched_tokens, _descending(homes[one.name])))
    return near + [one for one in by_load_first if not is_within(one)]


def _new_tokens(one: Candidate, work: Work) -> int:
    """Returns what the request would add to an engine's work."""
    return max(1, work.num_prompt_tokens - one.num_matched_tokens) + work.num_output_tokens


def _descending(value: bytes) -> bytes:
    """Orders the greatest first, where the rest of a key is ascending."""
    return bytes(255 - byte for byte in value)
