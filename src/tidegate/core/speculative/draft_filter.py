"""The `DraftFilter` port: which guesses cannot come true, known before they cost a forward pass."""

from collections.abc import Sequence
from typing import Protocol


class DraftFilter(Protocol):
    """Asked for each sequence that is about to get drafts."""

    def legal_drafts(self, key: int, num_generated: int, draft_ids: Sequence[int]) -> int:
        """Returns how many of these tokens, in this order, may follow the first `num_generated` ones."""
        ...


class AnyDraft:
    """Forbids nothing."""

    def legal_drafts(self, key: int, num_generated: int, draft_ids: Sequence[int]) -> int:  # noqa: ARG002 - a port
        """All of them."""
        return len(draft_ids)
