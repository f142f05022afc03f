"""The body field `x_script`: what the scripted engine shall play (CONTRACT.md section 15).

`pieces` holds one token an entry, as hex bytes. Members that describe how an engine hands over its output (`burst`,
`order`, `raw_finish`, `finish_with_last`, `mode`) are accepted and have no meaning here: this engine always hands
over increments, and its finish with the last of them. Unknown members are refused, as a misspelt script plays nonsense.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tidegate.contract.bounds import Count, PositiveCount, Seconds

ScriptLogprob = float | Literal["-inf"]
TopEntry = tuple[str, ScriptLogprob]
ScriptFinish = Literal["eos", "length", "error", "abort"]


class ScriptParsers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the output parsers that are active for this request."""

    tool: str | None = None
    reasoning: str | None = None


class ScriptPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one choice plays; as a member of `choices`, absent members come from the script around it.

    `pieces_special` maps a number of pieces to the control tokens, by their spelling, that come after that many.
    """

    pieces: list[str] | None = None
    finish: ScriptFinish | None = None
    step_tokens: list[PositiveCount] | None = None
    logprobs: list[ScriptLogprob] | None = None
    top: list[list[TopEntry]] | None = None
    error_after: Count | None = None
    repeat: PositiveCount | None = None
    delays_s: list[Seconds] | None = None
    pieces_special: dict[str, str | list[str]] | None = None
    raw_finish: str | None = None
    finish_with_last: bool | None = None
    mode: Literal["incremental", "cumulative"] | None = None


class ScriptBody(ScriptPart, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole request's script: either `pieces`, or `choices` with one part for each choice."""

    enc: Literal["hex"] | None = None
    choices: Annotated[list[ScriptPart], Meta(min_length=1, max_length=128)] | None = None
    prefill_delay_s: Seconds | None = None
    queue_delay_s: Seconds | None = None
    prompt_tokens: Count | None = None
    cached_tokens: Count | None = None
    prompt_tail: list[str] | None = None
    prompt_pieces: list[str] | None = None
    prompt_logprobs: list[ScriptLogprob | None] | None = None
    burst: bool | None = None
    order: str | None = None
    parsers: ScriptParsers | None = None
    thinking: bool | None = None
