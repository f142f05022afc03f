"""`Ledger`: the port to whatever remembers operations, for one server process or for several.

Stores answer with the types below. An operation is 32 bytes (`fingerprint.operation_id`), a fingerprint too, an answer
is opaque bytes.
"""

from dataclasses import dataclass
from typing import Protocol


class LedgerUnavailable(Exception):
    """The store does not answer, or cannot write. The text is for the log, not for callers."""


class LedgerFull(Exception):
    """Every entry is pending: there is nothing to forget. `num_entries` is how many there are."""

    def __init__(self, num_entries: int) -> None:
        super().__init__(f"all {num_entries} entries are pending")
        self.num_entries = num_entries


class LedgerBroken(Exception):
    """The ledger cannot be opened. The message says what to do; it is for the operator."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to carry out an operation and to record its answer. `generation` is never used again."""

    operation: bytes
    fingerprint: bytes
    generation: str


@dataclass(frozen=True, slots=True)
class Fresh:
    """The request runs, and must end its claim."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another request of this name runs."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The recorded answer."""

    answer: bytes


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The name was used for another request."""


ClaimAnswer = Fresh | InFlight | Replay | Mismatch


@dataclass(frozen=True, slots=True)
class LedgerStatistics:
    """`num_entries` and `num_bytes` are the store's, as this process last saw them; `num_evicted` is its own count."""

    num_entries: int = 0
    num_bytes: int = 0
    num_evicted: int = 0


class Ledger(Protocol):
    """All methods belong to one event loop and never block it. Cancelling one leaves the store consistent, and what
    was asked for may still happen: who must know the outcome waits shielded."""

    async def claim(self, operation: bytes, fingerprint: bytes) -> ClaimAnswer:
        """Claims an operation, or says why not; atomic among all processes that share the store.

        Raises LedgerFull, LedgerUnavailable.
        """
        ...

    async def record(self, claim: Claim, answer: bytes) -> bool:
        """Settles a claim. Once this has returned True a SIGKILL of this process does not lose the answer.

        False when the claim is not this one's any more: somebody else may have run. Older answers are forgotten where
        room is needed. Raises LedgerUnavailable; the claim then ends by itself, as after `release`.
        """
        ...

    async def release(self, claim: Claim) -> None:
        """Gives a claim up; a retry may run. Harmless when it is not held. Never raises: what the store cannot be told
        now it is told later, or it lapses."""
        ...

    def statistics(self) -> LedgerStatistics:
        """Returns a snapshot without asking the store."""
        ...

    async def aclose(self) -> None:
        """Ends what runs in the background. Claims still held lapse. Idempotent."""
        ...
