"""Numeric and length bounds as annotated types, and the size limits with their published names (CONTRACT.md 4, 12).

A bound that is part of the meaning of a field stands on its type. A limit that an operator may lower, and that is
reported in `error.limit`, stands in `Limits` and is checked by the rules.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tidegate.errors import InvalidValue, LimitFact

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
MAX_COUNT = 2**53 - 1
"""Larger integers are not exact in every JSON library."""
_PLAIN_TEXT = r"^[^\x00-\x1f\x7f]*\Z"

Temperature = Annotated[float, Meta(ge=0, le=2)]
TopP = Annotated[float, Meta(gt=0, le=1)]
TopK = Annotated[int, Meta(ge=-1, le=MAX_COUNT)]
MinP = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
RepetitionPenalty = Annotated[float, Meta(gt=0, le=2)]
Seed = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Priority = Annotated[int, Meta(ge=-100, le=100)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
CompletionLogprobCount = Annotated[int, Meta(ge=0, le=5)]
BestOf = Annotated[int, Meta(ge=1, le=20)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
PositiveCount = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
TokenIdNumber = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Milliseconds = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Seconds = Annotated[float, Meta(ge=0, le=3600)]

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
NonEmptyText = Annotated[str, Meta(min_length=1)]
FunctionName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Label = Annotated[str, Meta(max_length=512, pattern=_PLAIN_TEXT)]
"""A caller's word for somebody or something: bounded, no control characters."""
ShortLabel = Annotated[str, Meta(max_length=64, pattern=_PLAIN_TEXT)]
CacheSalt = Annotated[str, Meta(pattern=r"^[!-~]{1,256}\Z")]
"""Visible ASCII."""
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The size limits of one request, under the names that `limit.name` and `/v1/contract` use.

    `choices` bounds `n`, and the product of prompts and `n` when `n` is above 1. `max_output_tokens` is None where
    only the context bounds the output. `inputs` bounds what is embedded, scored, ranked or classified at once, and the
    product of inputs and `labels` when labels are given.
    """

    body_bytes: int = 32 * 1024 * 1024
    json_depth: int = 128
    messages: int = 4096
    prompts: int = 256
    choices: int = 128
    inputs: int = 2048
    labels: int = 128
    stop_strings: int = 4
    logit_bias_entries: int = 1024
    tools: int = 128
    tool_bytes: int = 256 * 1024
    schema_bytes: int = 256 * 1024
    schema_depth: int = 64
    max_output_tokens: int | None = None


def over_limit(param: str | None, name: str, *, value: int, actual: int) -> InvalidValue:
    """Returns the error for a request that is over the limit `name`."""
    subject = param if param is not None else "the request"
    return InvalidValue(
        f"{subject}: the limit {name} is {value}, and this request has {actual}",
        param=param,
        limit=LimitFact(name=name, value=value, actual=actual),
    )
