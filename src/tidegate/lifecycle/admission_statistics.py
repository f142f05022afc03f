"""AdmissionStatistics: the accounts of the gate, for metrics, people and tests."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdmissionStatistics:
    """The first group is of now, the rest are totals.

    `num_requests`, `num_sequences` and `num_blocks` are in the engine; `num_waiting` requests with
    `num_waiting_sequences` sequences wait at the gate, the longest of them since `oldest_waiting_at` (None for none).
    `num_unstarted` requests have no output yet, wherever they are; `queued_tokens` are their prompts'.

    Entered = acquired + withdrawn + refused later + waiting; acquired = released + in the engine. `refusals` counts by
    reason: the limit's name, or the error's code where no limit fired; those that never got a place included.
    `num_predictions` first tokens were foretold and came; `prediction_error_s` is the sum of how far off they were,
    and `num_late_predictions` of them came later than foretold.
    """

    num_requests: int
    num_sequences: int
    num_blocks: int
    num_waiting: int
    num_waiting_sequences: int
    num_unstarted: int
    queued_tokens: int
    oldest_waiting_at: float | None
    num_slots: int
    num_keys: int

    num_entered: int
    num_acquired: int
    num_released: int
    num_withdrawn: int
    refusals: Mapping[str, int]
    num_predictions: int
    num_late_predictions: int
    prediction_error_s: float
