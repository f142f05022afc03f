"""What an engine's refusal means for the request, by its HTTP status. The engine's own words never reach a caller.

| status | the request |
|---|---|
| 429, 503 | was not taken: the engine has no room now, and nothing ran |
| 401, 403, 404, 405 | was not taken: the engine is not set up for us |
| other 4xx | was refused for what it says, which our own checks should have seen |
| 5xx | failed in the engine |
"""

from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, ServeError

RETRY_AFTER_S = 2


def refusal_of(status: int | None) -> ServeError:
    """Returns the error of a request that was answered with this status."""
    if status in (429, 503):
        return EngineUnavailable("The engine takes no more requests now.", retry_after_s=RETRY_AFTER_S)
    if status in (401, 403, 404, 405):
        return EngineUnavailable("The engine is not set up for this server.", retry_after_s=RETRY_AFTER_S)
    if status is not None and 400 <= status < 500:
        return EngineRefused("The engine refused this request.")
    return EngineRefused("The engine could not carry out this request.")


def not_sent() -> EngineUnavailable:
    """Returns the error of a request for which there was no connection: nothing ran."""
    return EngineUnavailable("The engine cannot be reached.", retry_after_s=RETRY_AFTER_S)


def lost() -> EngineLost:
    """Returns the error of a request whose answer broke off: it may have run, so it is not tried again."""
    return EngineLost("The engine stopped while it worked on this request.")
