"""What comes out of a case."""

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    PASS = "pass"
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `event`: index in `Exchange.events` of the one that shows it. `ask` and `copy` are
    filled in by the judge where a check leaves them out.
    """

    says: str
    event: int | None = None
    ask: str = ""
    copy: int = 0


class CannotTell(Exception):
    """The answers allow no verdict: the model did not cooperate, or the server was asked something else before."""


class Refused(Exception):
    """The server said honestly that it does not serve what was asked."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason`: why it is `unsupported` or `inconclusive`, in words. `num_runs`: how often the case was run;
    `num_conclusive`: how many of the runs told something. `is_suite_fault`: the suite itself failed, not the server.
    """

    case_id: str
    outcome: Outcome
    faults: tuple[Fault, ...] = ()
    reason: str = ""
    num_runs: int = 1
    num_conclusive: int = 1
    is_suite_fault: bool = False

    @property
    def confidence(self) -> str:
        """How sure the verdict is, in words; empty where one run told all."""
        if self.num_runs == 1 and self.num_conclusive == 1:
            return ""
        return f"{self.num_conclusive} of {self.num_runs} runs told something"
