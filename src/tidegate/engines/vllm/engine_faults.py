"""What an exception of vLLM's `AsyncLLM` means for the request, by the names of its classes.

| class | raised for | the request |
|---|---|---|
| EngineDeadError | everything, once the engine's processes have gone | is lost: it may have run |
| GracefulHTTPError, RetryableRequestError | a full queue of vLLM's own | was not taken |
| VLLMClientError | a field, before anything ran; our own checks should have seen it | was refused |
| EngineGenerateError | this request alone; the reason is its cause | failed |
| any other | | failed, and a fault of ours is likely |

vLLM's words go to the log and never to a caller. Pure.
"""

from tidegate.engines.remote.carrier import Ending, Outcome
from tidegate.engines.remote.remote_error import RETRY_AFTER_S, lost
from tidegate.errors import EngineRefused, EngineUnavailable, InternalError, InvalidValue

MAX_REASON_CHARS = 500

_DEAD = "EngineDeadError"
_FULL = ("GracefulHTTPError", "RetryableRequestError")
_CLIENT = "VLLMClientError"
_SERVER = "VLLMServerError"


def outcome_of(error: BaseException) -> Outcome:
    """Returns how a run ends that raised `error`."""
    names = {kind.__name__ for kind in type(error).__mro__}
    reason = describe(error)
    if _DEAD in names:
        return Outcome(Ending.LOST, reason, lost())
    if not names.isdisjoint(_FULL):
        error_told = EngineUnavailable("The engine takes no more requests now.", retry_after_s=RETRY_AFTER_S)
        return Outcome(Ending.REFUSED, reason, error_told)
    if _CLIENT in names:
        return Outcome(Ending.REFUSED, reason, InvalidValue("The engine refuses this request."))
    if _SERVER in names:
        return Outcome(Ending.REFUSED, reason, EngineRefused("The engine could not carry out this request."))
    return Outcome(Ending.REFUSED, reason, InternalError("An internal error."))


def describe(error: BaseException) -> str:
    """Returns an exception and what caused it, for operators, in one line."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < 4:
        words = " ".join(str(seen).split())
        parts.append(f"{type(seen).__name__}: {words}" if words else type(seen).__name__)
        seen = seen.__cause__
    return " from ".join(parts)[:MAX_REASON_CHARS]
