"""CostModel: what prefills and steps take, and CostFitter: how that is learned while the server runs.

A prefill of n tokens takes base + per token x n, a step of any number of decode rows one step time. Where the engine
cuts long prompts into chunks, every chunk beyond the first costs a base again, and a step as well while others decode.

The fitter decides from totals that the engine counts up since it started. Two snapshots differ by what happened
between them, whoever looks, and however often; so nothing has to be seen step by step. Time in steps with a prefill,
less the decode share of those that also decoded, is a x steps + b x tokens: weighted least squares over intervals,
with exponential forgetting. An interval that took several times what the model says (the machine slept, a page came
from disk) counts as the most that is plausible. Intervals in which all steps were alike cannot tell a from b; then all
of the time is laid on the tokens, which is right for such steps and careful for shorter ones.

Before it has seen enough it says nothing, and nobody is vetoed.

Does not know requests, queues, or the engine's rules; times are seconds. Known weakness: prefixes that the engine has
cached already cost nothing there, and full price here.
"""

from dataclasses import dataclass

MIN_PREFILL_STEPS, MIN_DECODE_STEPS, MIN_INTERVALS = 8, 8, 4
FORGETTING = 0.98
"""What the past still weighs after one more interval."""
MAX_SURPRISE = 4.0
"""An interval counts as at most this many times what the model expects of it."""
_COLLINEAR = 1e-3


@dataclass(frozen=True, slots=True)
class CostModel:
    """What the engine's work takes, in seconds."""

    prefill_base_s: float
    prefill_token_s: float
    step_s: float

    def __post_init__(self) -> None:
        if min(self.prefill_base_s, self.prefill_token_s, self.step_s) < 0:
            raise ValueError(f"costs below zero: {self}")


@dataclass(frozen=True, slots=True)
class ChunkRule:
    """How many prompt tokens of one sequence a step takes: alone, and beside decode rows. None for any number."""

    alone: int | None = None
    beside_decodes: int | None = None


@dataclass(frozen=True, slots=True)
class StepTotals:
    """What the engine has done since it started. `num_mixed_steps` carried a prefill and decode rows."""

    prefill_steps_s: float = 0.0
    num_prefill_steps: int = 0
    num_mixed_steps: int = 0
    num_prefill_tokens: int = 0
    decode_steps_s: float = 0.0
    num_decode_steps: int = 0

    def since(self, earlier: "StepTotals") -> "StepTotals | None":
        """Returns the difference; None when the engine was started anew in between."""
        difference = StepTotals(
            self.prefill_steps_s - earlier.prefill_steps_s,
            self.num_prefill_steps - earlier.num_prefill_steps,
            self.num_mixed_steps - earlier.num_mixed_steps,
            self.num_prefill_tokens - earlier.num_prefill_tokens,
            self.decode_steps_s - earlier.decode_steps_s,
            self.num_decode_steps - earlier.num_decode_steps,
        )
        if min(difference.num_prefill_steps, difference.num_prefill_tokens, difference.num_decode_steps) < 0:
            return None
        return difference


class _StepFit:
    """The mean time of a decode step."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._weight = 0.0
        self.num_steps = 0
        self.num_intervals = 0

    @property
    def step_s(self) -> float | None:
        return self._seconds / self._weight if self._weight else None

    def add(self, seconds: float, num_steps: int) -> None:
        mean = self.step_s
        if self.num_intervals >= MIN_INTERVALS and mean is not None:
            seconds = min(seconds, MAX_SURPRISE * mean * num_steps)
        self._seconds = self._seconds * FORGETTING + seconds
        self._weight = self._weight * FORGETTING + num_steps
        self.num_steps += num_steps
        self.num_intervals += 1


class _PrefillFit:
    """Least squares of time = base x steps + token x tokens; an interval weighs as many steps as it has."""

    def __init__(self) -> None:
        self._nn = self._nk = self._kk = self._nt = self._kt = 0.0
        self.num_steps = 0
        self.num_intervals = 0

    def add(self, seconds: float, num_steps: int, num_tokens: int) -> None:
        if self.num_intervals >= MIN_INTERVALS:
            base_s, token_s = self.solve()
            expected = base_s * num_steps + token_s * num_tokens
            seconds = min(seconds, MAX_SURPRISE * expected) if expected > 0 else seconds
        weight = 1.0 / num_steps
        self._nn = self._nn * FORGETTING + weight * num_steps * num_steps
        self._nk = self._nk * FORGETTING + weight * num_steps * num_tokens
        self._kk = self._kk * FORGETTING + weight * num_tokens * num_tokens
        self._nt = self._nt * FORGETTING + weight * num_steps * seconds
        self._kt = self._kt * FORGETTING + weight * num_tokens * seconds
        self.num_steps += num_steps
        self.num_intervals += 1

    def solve(self) -> tuple[float, float]:
        """Returns base and token time, neither below zero."""
        determinant = self._nn * self._kk - self._nk * self._nk
        if determinant <= _COLLINEAR * self._nn * self._kk:
            return 0.0, self._kt / self._kk if self._kk else 0.0
        base_s = (self._nt * self._kk - self._kt * self._nk) / determinant
        token_s = (self._kt * self._nn - self._nt * self._nk) / determinant
        if base_s < 0:
            return 0.0, max(0.0, self._kt / self._kk)
        if token_s < 0:
            return max(0.0, self._nt / self._nn), 0.0
        return base_s, token_s


class CostFitter:
    """Learns one engine's costs."""

    def __init__(self) -> None:
        self._last: StepTotals | None = None
        self._steps = _StepFit()
        self._prefills = _PrefillFit()

    @property
    def model(self) -> CostModel | None:
        """What is known; None until there is enough of it."""
        steps, prefills = self._steps, self._prefills
        step_s = steps.step_s
        if step_s is None or steps.num_steps < MIN_DECODE_STEPS or prefills.num_steps < MIN_PREFILL_STEPS:
            return None
        if min(steps.num_intervals, prefills.num_intervals) < MIN_INTERVALS:
            return None
        return CostModel(*prefills.solve(), step_s)

    def observe(self, totals: StepTotals) -> bool:
        """Takes a snapshot of the engine's totals; says whether anything was learned from it."""
        last, self._last = self._last, totals
        delta = None if last is None else totals.since(last)
        if delta is None or delta.num_prefill_steps + delta.num_decode_steps == 0:
            return False
        if delta.num_decode_steps:
            self._steps.add(delta.decode_steps_s, delta.num_decode_steps)
        if delta.num_prefill_steps:
            decodes_s = delta.num_mixed_steps * (self._steps.step_s or 0.0)
            prefill_s = max(0.0, delta.prefill_steps_s - decodes_s)
            self._prefills.add(prefill_s, delta.num_prefill_steps, delta.num_prefill_tokens)
        return True
