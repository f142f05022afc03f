"""What one call of the scheduler hands over: a plan, and what its logits are for."""

from dataclasses import dataclass, field

from tidegate.core.chooser import ChooseRow
from tidegate.core.plan import StepPlan
from tidegate.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Prompt positions to score: token `i` by the logits of row `first_row + i`."""

    sequence: Sequence
    first_row: int
    token_ids: list[int]


@dataclass(slots=True)
class ScheduledStep:
    """A plan, and what its logits are for. `due` stands beside `rows`; `spent` end once the plan is carried out."""

    plan: StepPlan = field(default_factory=StepPlan)
    rows: list[ChooseRow] = field(default_factory=list)
    due: list[Sequence] = field(default_factory=list)
    scores: list[ScoreRows] = field(default_factory=list)
    prefilled: list[Sequence] = field(default_factory=list)
    spent: list[Sequence] = field(default_factory=list)
    num_logit_rows: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.plan.moves or self.plan.decode or self.plan.prefill)
