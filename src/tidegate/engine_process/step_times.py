"""StepTimes: where the engine's time goes, counted up so that whoever looks now and then can take differences.

Decides to which kind a step belongs: one that carried prompt tokens, alone or beside decode rows, or one of decode
rows only. Batches of pooled prompts are no steps and are counted apart; what computed nothing does not count. Does not
know clocks.
"""

import msgspec

from tidegate.engine.gauges import EngineGauges


class StepTimes:
    """Begins at zero with the engine process."""

    def __init__(self) -> None:
        self._step_s = 0.0
        self._num_steps = 0
        self._num_prefill_tokens = 0
        self._prefill_steps_s = 0.0
        self._num_prefill_steps = 0
        self._num_mixed_steps = 0
        self._decode_steps_s = 0.0
        self._num_decode_steps = 0
        self._num_pooled_batches = 0
        self._pooled_s = 0.0

    def note(self, gauges: EngineGauges, step_s: float) -> None:
        """Takes a step's duration, and the core's accounts after it."""
        self._step_s = step_s
        num_prefill = gauges.num_prefill_tokens - self._num_prefill_tokens
        is_step = gauges.num_steps > self._num_steps
        self._num_prefill_tokens, self._num_steps = gauges.num_prefill_tokens, gauges.num_steps
        if gauges.num_pooled_batches > self._num_pooled_batches:
            self._num_pooled_batches = gauges.num_pooled_batches
            self._pooled_s += step_s
        if not is_step:
            return
        if num_prefill:
            self._prefill_steps_s += step_s
            self._num_prefill_steps += 1
            self._num_mixed_steps += gauges.num_step_tokens > num_prefill
        else:
            self._decode_steps_s += step_s
            self._num_decode_steps += 1

    def add_to(self, gauges: EngineGauges) -> EngineGauges:
        """Returns the core's accounts with the times in them."""
        return msgspec.structs.replace(
            gauges,
            step_s=self._step_s,
            prefill_steps_s=self._prefill_steps_s,
            num_prefill_steps=self._num_prefill_steps,
            num_mixed_steps=self._num_mixed_steps,
            decode_steps_s=self._decode_steps_s,
            num_decode_steps=self._num_decode_steps,
            pooled_s=self._pooled_s,
        )
