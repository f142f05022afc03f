"""Who of those that wait gets memory, and what each begins with.

Decides:
- Waiting sequences are admitted strictly in order: nothing passes one that lacks blocks or a row. Held sequences are
  preempted for it. One block for each running sequence stays to be had, or the newcomer would be preempted at once.
- A sequence whose sibling is reading their prompt waits for that one, and shares it then (`core/scheduler.py`).
- A sequence whose next block another one with the same salt is about to read waits for that one, too, and keeps its
  place and a row: twenty requests with one beginning that come at once compute it once. Who is held, or not due, makes
  nobody wait.
- A sequence begins with what is in memory of its tokens: all of a sibling's prompt, else the longest beginning, of one
  block at least, that anybody with the same salt holds, running or ended. Tokens whose logits it owes are computed: its
  last one at least, and where prompt tokens are scored, from the one before the first of them on.

Does not know tokens of a step, or what happens to a sequence later.
"""

from tidegate.core.kv.manager import KvManager, KvSource
from tidegate.core.roster import Roster
from tidegate.core.sequence import Sequence
from tidegate.core.sequence_status import SequenceStatus


class Entrance:
    """Admits from the waiting to the active sequences of one roster."""

    def __init__(self, roster: Roster, kv: KvManager, *, can_share: bool, has_cache: bool) -> None:
        self._roster = roster
        self._kv = kv
        self._can_share = can_share
        self._has_cache = can_share and has_cache

    def admit_waiting(self, now: float) -> None:
        """Admits whom there is room for at instant `now`."""
        while True:
            sequence, num_claimed = self._first_startable(now)
            if sequence is None or not self._make_room(sequence, num_claimed):
                return
            self._roster.admit(sequence, now, source=self._source_of(sequence))

    def _first_startable(self, now: float) -> tuple[Sequence | None, int]:
        """Returns the first waiting sequence that no prefill under way will serve, and the rows claimed before it."""
        if not len(self._roster.waiting):
            return None, 0
        reading = [s for s in self._roster.active if s.status is SequenceStatus.PREFILLING]
        led = {id(s.live) for s in reading if not s.generated and len(s.live.sequences) > 1 and self._can_share}
        readers = [s for s in reading if s.is_due(now)] if self._has_cache else []
        num_held = sum(sequence.is_held for sequence in self._roster.active)
        return self._roster.waiting.first(
            now,
            skip=lambda sequence: (
                (id(sequence.live) in led and not sequence.is_started)
                or any(self._is_ahead(reader, sequence) for reader in readers)
            ),
            max_skipped=self._kv.num_free_rows + num_held,
        )

    def _is_ahead(self, reader: Sequence, sequence: Sequence) -> bool:
        """Whether `reader` has yet to read a block that `sequence` would read next, the beginning being the same."""
        salt, size = sequence.live.request.cache_salt, self._kv.block_tokens
        limit = min(reader.num_tokens, sequence.num_reusable)
        if reader.live.request.cache_salt != salt or reader.num_computed + size > limit:
            return False
        if reader.packed(0, size) != sequence.packed(0, size):
            return False
        found = self._kv.find(salt, sequence.packed(0, sequence.num_reusable))
        num_known = max(reader.num_computed, found.num_tokens if found is not None else 0)
        end = (num_known // size + 1) * size
        return end <= limit and reader.packed(0, end) == sequence.packed(0, end)

    def can_admit(self, now: float) -> bool:
        """Whether `admit_waiting` would admit somebody."""
        sequence, num_claimed = self._first_startable(now)
        if sequence is None:
            return False
        return self._has_room(sequence, num_claimed) or any(other.is_held for other in self._roster.active)

    def _make_room(self, sequence: Sequence, num_claimed: int) -> bool:
        while not self._has_room(sequence, num_claimed):
            held = [other for other in self._roster.active if other.is_held]
            if not held:
                return False
            self._roster.preempt(held[-1])
        return True

    def _has_room(self, sequence: Sequence, num_claimed: int) -> bool:
        num_running = sum(not s.is_held and s.status is SequenceStatus.RUNNING for s in self._roster.active)
        return num_claimed < self._kv.num_free_rows and self._kv.fits(
            sequence.num_tokens, self._source_of(sequence), num_reserved_blocks=num_running
        )

    def _source_of(self, sequence: Sequence) -> KvSource | None:
        """Returns who has the sequence's beginning in memory: a sibling all of the prompt, else whoever has most."""
        num_shared = min(sequence.num_prompt, sequence.num_reusable)
        if not self._can_share or num_shared == 0:
            return None
        siblings = sequence.live.sequences if len(sequence.live.sequences) > 1 else ()
        for other in siblings:
            if other.seq_id is not None and other.num_computed >= num_shared:
                return KvSource(other.seq_id, num_shared)
        if not self._has_cache:
            return None
        return self._kv.find(sequence.live.request.cache_salt, sequence.packed(0, sequence.num_reusable))
