"""What speculation keeps for one sequence, for as long as the sequence lives."""

from dataclasses import dataclass

from tidegate.core.speculative.pace import DraftPace
from tidegate.core.speculative.prompt_lookup import PromptLookup


@dataclass(frozen=True, slots=True)
class Speculation:
    """Its guesser and its pace. Both outlive preemption: the text stays the same."""

    lookup: PromptLookup
    pace: DraftPace
