"""Which sequence id a new sequence takes.

Decides by what ids are for the backend. Where any id is as good as another: the least that is free, else that of the
cached owner whose use is longest ago. Where a forward pass goes over consecutive ids (`is_ordered`): an id that closes
a gap between ids in use, else one beside them, whoever is cached there. Does not know what anybody holds.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdChoice:
    """The id to take, and who is cached there, or None. `refuge` is an id to move that one to, where there is one.

    `refuge` is free, or that of the cached owner whose use is longest ago.
    """

    seq_id: int
    evicted: int | None = None
    refuge: int | None = None


def choose_id(
    used: frozenset[int],
    free: Iterable[int],
    cached: tuple[int, ...],
    *,
    is_ordered: bool = False,
    preferred: int | None = None,
) -> IdChoice:
    """Returns the choice; `preferred`, one of `cached`, where it is as good as any.

    `cached` stands in order of use, oldest first. One id at least is free or cached.
    """
    unused = sorted(free)
    rank = _ranks(used) if is_ordered else {}
    best = max(rank.get(seq_id, 0) for seq_id in (*unused, *cached))
    if preferred is not None and rank.get(preferred, 0) == best:
        return IdChoice(preferred, preferred)
    for seq_id in unused:
        if rank.get(seq_id, 0) == best:
            return IdChoice(seq_id)
    chosen = next(seq_id for seq_id in cached if rank.get(seq_id, 0) == best)
    refuge = unused[-1] if unused else cached[0]
    return IdChoice(chosen, chosen, refuge if refuge != chosen else None)


def _ranks(used: frozenset[int]) -> dict[int, int]:
    """How many neighbours in use an id has: 2 closes a gap, 1 lies beside one, others are not listed."""
    ranks: dict[int, int] = {}
    for seq_id in used:
        for beside in (seq_id - 1, seq_id + 1):
            if beside not in used:
                ranks[beside] = ranks.get(beside, 0) + 1
    return ranks
