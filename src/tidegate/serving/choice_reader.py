"""ChoiceReader: how the engine's output for one choice becomes events: as text, as a vector, as a likelihood."""

from typing import Protocol

from tidegate.inference.event import StreamEvent
from tidegate.inference.output import TokenDelta


class ChoiceReader(Protocol):
    """Fed with every delta of one choice, in order."""

    @property
    def num_tokens(self) -> int:
        """Tokens that were generated."""
        ...

    @property
    def num_reasoning_tokens(self) -> int: ...

    @property
    def is_finished(self) -> bool:
        """Whether the choice has all that it will ever have."""
        ...

    @property
    def outcome(self) -> str | None:
        """How it ended, in one word; None before."""
        ...

    def feed(self, delta: TokenDelta) -> list[StreamEvent]:
        """Returns the events of one delta. A delta that finishes the choice badly is the driver's affair."""
        ...
