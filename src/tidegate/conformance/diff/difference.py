"""Difference: one thing that is not as it was, and what that means for a caller."""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Meaning(Enum):
    """What a difference is. Only regressions make a comparison fail."""

    REGRESSION = "regression"
    INTENDED = "intended change"
    VARIATION = "allowed variation"
    ADDITION = "compatible addition"
    IMPROVEMENT = "improvement"


class Aspect(Enum):
    """What differs."""

    VERDICT = "verdict"
    ENDING = "ending"
    STATUS = "status"
    ERROR = "error"
    CONTENT_TYPE = "content type"
    HEADER = "header"
    SHAPE = "shape"
    GRAMMAR = "order of chunks"
    FRAMING = "framing"
    PROMPT_TOKENS = "prompt tokens"
    COMPLETION_TOKENS = "completion tokens"
    FINISH = "finish reason"
    TEXT = "text"
    CALLS = "tool calls"
    LOGPROBS = "logprobs"
    CAPABILITY = "capability"


@dataclass(frozen=True, slots=True)
class Difference:
    """`where`: the part of the aspect that differs (a path, a header, a choice), "" for all of it. `old` and `new` as
    they are shown. `because`: why it has its meaning. Of the whole comparison where `case_id` is "".
    """

    aspect: Aspect
    meaning: Meaning
    case_id: str
    ask: str
    where: str
    old: Any
    new: Any
    because: str
