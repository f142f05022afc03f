"""How much time and text one rendering may use, and the account of it.

Time is looked at in every round of a loop, at every call and for every piece of output; sizes are foretold before a
value is made, so that nothing huge is ever built. A budget belongs to one rendering. It is reached through a context
variable because the template engine hands nothing of the caller's to the places where text is joined.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil

from tidegate.errors import InvalidTemplateInput, LimitFact

_MAX_INTEGER_BITS = 4096
_WIDE_FORMAT = re.compile(r"\d{4,}|\*|\{[^{}]*:[^{}]*\{")
"""A width of four digits or more, or one that comes from an argument: formats that can blow up."""


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """`max_bytes` bounds the rendered prompt in UTF-8, `max_ms` the time. `now` reads a monotonic clock in seconds."""

    max_bytes: int
    max_ms: int
    now: Callable[[], float]


class RenderBudget:
    """What one rendering has used. Raises InvalidTemplateInput, naming the limit, once it is used up."""

    __slots__ = ("_limits", "_num_produced", "_started_at")

    def __init__(self, limits: RenderLimits) -> None:
        self._limits = limits
        self._started_at = limits.now()
        self._num_produced = 0

    def tick(self) -> str:
        """Looks at the clock. Returns "" so that it can stand in a template."""
        used_ms = (self._limits.now() - self._started_at) * 1000
        if used_ms > self._limits.max_ms:
            raise InvalidTemplateInput(
                f"rendering the chat template took longer than {self._limits.max_ms} ms",
                param="messages",
                limit=LimitFact("template_ms", self._limits.max_ms, ceil(used_ms)),
            )
        return ""

    def check_output(self, num_bytes: int) -> None:
        """Checks the length of the prompt so far."""
        if num_bytes > self._limits.max_bytes:
            raise InvalidTemplateInput(
                f"the rendered chat prompt is longer than {self._limits.max_bytes} bytes",
                param="messages",
                limit=LimitFact("template_bytes", self._limits.max_bytes, num_bytes),
            )

    def charge(self, length: int) -> None:
        """Accounts for a string or list of `length` that is about to be made. None may be twice the size of the whole
        prompt; all together, thrown away or not, may be 256 times.
        """
        self.check_output(length // 2)
        self._num_produced += length
        self.check_output(self._num_produced // 256)


CURRENT_BUDGET: ContextVar[RenderBudget] = ContextVar("render_budget")


def charge_binary(operator: str, left: object, right: object) -> None:
    """Foretells the size of `left operator right`."""
    budget = CURRENT_BUDGET.get()
    if isinstance(left, int) and isinstance(right, int):
        if (operator == "*" and left.bit_length() + right.bit_length() > _MAX_INTEGER_BITS) or (
            operator == "**" and left.bit_length() * abs(right) > _MAX_INTEGER_BITS
        ):
            raise OverflowError("integer too large")
    elif operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
        budget.charge(len(left) + len(right))
    elif operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | list | tuple) and isinstance(times, int):
                budget.charge(len(sequence) * max(times, 0))
    elif operator == "%" and isinstance(left, str):
        check_format(left)
        budget.charge(len(left))


def charge_method(name: str, text: str, args: tuple[object, ...]) -> None:
    """Foretells the size of what a method of `str` returns."""
    budget = CURRENT_BUDGET.get()
    first = args[0] if args else None
    if name in ("center", "ljust", "rjust", "zfill") and isinstance(first, int):
        budget.charge(max(len(text), first))
    elif name == "expandtabs":
        budget.charge(len(text) * (first if isinstance(first, int) and first > 0 else 8))
    elif name == "replace" and len(args) > 1 and isinstance(first, str) and isinstance(args[1], str):
        budget.charge(len(text) + text.count(first) * max(len(args[1]) - len(first), 0))
    elif name == "join" and isinstance(first, list | tuple | str):
        budget.charge(sum(len(item) for item in first if isinstance(item, str)) + len(text) * len(first))


def check_format(pattern: str) -> None:
    """Refuses format strings that ask for enormous fields."""
    if _WIDE_FORMAT.search(pattern):
        raise OverflowError("format field too wide")
