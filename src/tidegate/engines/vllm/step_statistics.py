"""StepStatistics: what vLLM's scheduler says of itself after each step, joined to the accounts of our own requests.

vLLM is silent while it has nothing to do, and its last word before that may still hold what has just ended: so its
numbers count only while a request of ours is open. Counters run since the start of the server process. Pure.
"""

from typing import Any

import msgspec

from tidegate.engine.gauges import EngineGauges


class StepStatistics:
    """`num_blocks` is the present engine's."""

    def __init__(self) -> None:
        self.num_blocks = 0
        self._usage = 0.0
        self._num_steps = 0
        self._num_preemptions = 0
        self._num_prefill_tokens = 0

    def begin(self, num_blocks: int) -> None:
        """A new engine: nothing is in its cache."""
        self.num_blocks = num_blocks
        self._usage = 0.0

    def take(self, scheduler: Any, iteration: Any) -> None:
        """Takes what vLLM tells after a step; members that a version does not have count as nothing."""
        if scheduler is not None:
            self._num_steps += 1
            self._usage = min(1.0, max(0.0, float(getattr(scheduler, "kv_cache_usage", 0.0))))
        if iteration is not None:
            self._num_preemptions += int(getattr(iteration, "num_preempted_reqs", 0))
            self._num_prefill_tokens += int(getattr(iteration, "num_prompt_tokens", 0))

    def measure(self, gauges: EngineGauges) -> EngineGauges:
        """Returns the accounts with what only the engine knows."""
        num_open = gauges.num_waiting + gauges.num_running + gauges.num_held
        used = round(self._usage * self.num_blocks) if num_open else 0
        return msgspec.structs.replace(
            gauges,
            blocks_used=used,
            blocks_free=self.num_blocks - used,
            num_steps=self._num_steps,
            num_preemptions=self._num_preemptions,
            num_prefill_tokens=self._num_prefill_tokens,
        )
