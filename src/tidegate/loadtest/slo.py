"""Slo: what a caller is content with. A request is good when it is done and within every bound that is set. Pure."""

import msgspec

from tidegate.loadtest.sample import Sample


class Slo(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one request, in seconds. `itl_s`: of each gap between two pieces of text, so of the longest one."""

    ttft_s: float | None = None
    itl_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    @property
    def is_set(self) -> bool:
        return any(bound is not None for bound in (self.ttft_s, self.itl_s, self.tpot_s, self.e2e_s))

    def is_met(self, sample: Sample) -> bool:
        """Whether the request was good. One without any text meets no bound on its first one."""
        if not sample.is_done:
            return False
        first = sample.ttft_s
        if self.ttft_s is not None and (first is None or first > self.ttft_s):
            return False
        measured = ((max(sample.gaps_s, default=None), self.itl_s), (sample.tpot_s, self.tpot_s))
        if any(bound is not None and value is not None and value > bound for value, bound in measured):
            return False
        return self.e2e_s is None or sample.e2e_s <= self.e2e_s
