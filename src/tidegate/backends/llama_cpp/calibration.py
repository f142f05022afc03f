"""What suits this machine and this model best, out of a few timed passes.

Decides:
- Threads: the number with the best mean of decode rates over the batches that were timed with every number; of those
  within `NEAR` of the best the least, for what a thread burns is taken from the server.
- Prompt tokens beside decode rows: the fewest that are read at `BEST` of the best rate, because the slices of several
  prompts in one step are passes of their own and make every step dearer. Where reading them takes longer than
  `LONG_STEP_S`, for which running streams would wait, the fewest at `GOOD` of it.

Does not know clocks, llama.cpp, or whether the machine was quiet: whoever measures leaves out what was disturbed.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

NEAR = 0.97
BEST = 0.95
GOOD = 0.9
LONG_STEP_S = 0.75


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was found; None where nothing could be."""

    num_threads: int | None = None
    prefill_chunk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class DecodeTiming:
    """Seconds of one pass over a single token of each of `batch` sequences."""

    num_threads: int
    batch: int
    pass_s: float


def choose_threads(timings: Iterable[DecodeTiming]) -> int | None:
    """Returns the number of threads to use; None where fewer than two can be compared."""
    rates: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for timing in timings:
        rates[timing.num_threads][timing.batch] = timing.batch / timing.pass_s
    if len(rates) < 2:
        return None
    batches = set.intersection(*(set(by_batch) for by_batch in rates.values()))
    if not batches:
        return None
    means = {
        num_threads: math.exp(sum(math.log(by_batch[batch]) for batch in batches) / len(batches))
        for num_threads, by_batch in rates.items()
    }
    best = max(means.values())
    return min(num_threads for num_threads, mean in means.items() if mean >= NEAR * best)


def choose_chunk(pass_s: Mapping[int, float]) -> int | None:
    """Returns how many prompt tokens to feed beside decode rows, out of seconds by number of tokens; None where fewer
    than two can be compared.
    """
    if len(pass_s) < 2:
        return None
    rates = {num_tokens: num_tokens / seconds for num_tokens, seconds in pass_s.items()}
    best = max(rates.values())
    chunk = min(num_tokens for num_tokens, rate in rates.items() if rate >= BEST * best)
    if pass_s[chunk] <= LONG_STEP_S:
        return chunk
    return min(num_tokens for num_tokens, rate in rates.items() if rate >= GOOD * best)
