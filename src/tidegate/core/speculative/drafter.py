"""The draft tokens of one step.

Decides how many each sequence gets: as many as its own pace wishes and its lookup finds, never more than it may still
generate, and together no more than the step has left when everything else is planned. A share that is too small for
all wishes is divided evenly. Drafts take only blocks that nobody else needs: one stays free for each running sequence.
Does not know logits, or who accepts: it is told.
"""

from collections.abc import Sequence as Rows
from dataclasses import dataclass

from tidegate.core.budget import share_evenly
from tidegate.core.kv.manager import KvManager
from tidegate.core.sequence import Sequence
from tidegate.core.speculative.draft_filter import DraftFilter
from tidegate.core.speculative.pace import DraftPace
from tidegate.core.speculative.prompt_lookup import PromptLookup, PromptNgrams
from tidegate.core.speculative.state import Speculation


@dataclass(frozen=True, slots=True)
class Wish:
    """A sequence that feeds its newest token, and how many more it may generate behind the next one."""

    sequence: Sequence
    max_tokens: int


class Drafter:
    """Guesses, and counts what became of it. `max_draft_tokens` bounds one sequence's guesses in a step."""

    def __init__(self, max_draft_tokens: int, kv: KvManager, draft_filter: DraftFilter) -> None:
        self.num_drafts = 0
        self.num_draft_tokens = 0
        self.num_accepted_tokens = 0
        self._max_draft_tokens = max_draft_tokens
        self._kv = kv
        self._filter = draft_filter

    def draft(self, wishes: Rows[Wish], num_tokens: int, num_running: int) -> dict[int, list[int]]:
        """Returns draft tokens by sequence key, `num_tokens` in all at most; their blocks are taken.

        `num_running` sequences must still find a block each.
        """
        found = [(wish.sequence, self._propose(wish)) for wish in wishes] if num_tokens > 0 else []
        shares = share_evenly([len(tokens) for _, tokens in found], num_tokens)
        drafts: dict[int, list[int]] = {}
        for (sequence, tokens), share in zip(found, shares, strict=True):
            num_held = sequence.num_tokens
            room = self._kv.reach(sequence.key, num_reserved_blocks=num_running) - num_held
            kept = tokens[: min(share, room)] if room > 0 else []
            if kept and self._kv.grow(sequence.key, num_held + len(kept)):
                drafts[sequence.key] = kept
        return drafts

    def note(self, sequence: Sequence, num_drafted: int, num_accepted: int) -> None:
        """Takes how many of a sequence's drafts were what it then chose."""
        self.num_drafts += 1
        self.num_draft_tokens += num_drafted
        self.num_accepted_tokens += num_accepted
        assert sequence.speculation is not None
        sequence.speculation.pace.note(num_drafted, num_accepted)

    def _propose(self, wish: Wish) -> list[int]:
        speculation = self._speculation(wish.sequence)
        wanted = min(speculation.pace.next_wish(), wish.max_tokens)
        if wanted < 1:
            return []
        sequence = wish.sequence
        found = speculation.lookup.propose(sequence.generated, wanted)
        return found[: self._filter.legal_drafts(sequence.key, len(sequence.generated), found)] if found else []

    def _speculation(self, sequence: Sequence) -> Speculation:
        if sequence.speculation is None:
            live = sequence.live
            if live.ngrams is None:
                live.ngrams = PromptNgrams(live.prompt)
            sequence.speculation = Speculation(PromptLookup(live.ngrams), DraftPace(self._max_draft_tokens))
        return sequence.speculation
