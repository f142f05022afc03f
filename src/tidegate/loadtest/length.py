"""Lengths in tokens: one number, or a range of which each request draws one. Pure."""

from dataclasses import dataclass

from tidegate.loadtest.dice import Dice


@dataclass(frozen=True, slots=True)
class Length:
    """From `low` to `high` tokens, both included, all as likely."""

    low: int
    high: int

    def draw(self, dice: Dice) -> int:
        """Returns one length."""
        return self.low if self.low == self.high else dice.between(self.low, self.high)

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def read_length(text: str) -> Length:
    """Returns the length that `text` spells: `256` or `128-512`. Raises ValueError, saying what would do."""
    low, dash, high = text.partition("-")
    try:
        length = Length(int(low), int(high) if dash else int(low))
    except ValueError:
        raise ValueError(f"{text!r} is no length in tokens; one looks like 256 or 128-512") from None
    if not 1 <= length.low <= length.high:
        raise ValueError(f"{text!r} is no length in tokens: it begins with at least 1, and does not run backwards")
    return length
