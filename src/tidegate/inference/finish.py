"""Why a choice ended: the engine's word for it, and the caller's."""

from enum import IntEnum, StrEnum

import msgspec


class EngineFinish(IntEnum):
    """Why the engine stopped generating a choice."""

    EOS = 0
    """An end-of-generation token of the model."""
    STOP_TOKEN = 1
    """A token of the request's `stop_token_ids`; the delta names it."""
    LENGTH = 2
    """The token budget or the context is used up."""
    ABORTED = 3
    """Somebody asked for it, or the engine gave the request up by itself."""
    FAILED = 4
    """This sequence cannot go on; the delta's `error` says why."""
    GRAMMAR_COMPLETE = 5
    """The request's grammar is complete, and nothing could follow."""
    GRAMMAR_DEAD_END = 6
    """The request's grammar, with what else the request forbids, leaves no token that could follow."""
    POOLED = 7
    """Nothing was to be generated: the delta's `pooled` is the answer."""


class FinishReason(StrEnum):
    """Why a choice ended, in the public API's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FUNCTION_CALL = "function_call"
    """The deprecated word for the same, where the request was made in deprecated words."""
    CONTENT_FILTER = "content_filter"


class StopMatch(msgspec.Struct, frozen=True):
    """What ended a choice with reason `stop`: a stop string, a stop token id, or a grammar that could not go on; none
    of them for an end token.
    """

    text: str | None = None
    token_id: int | None = None
    is_dead_end: bool = False
