"""What a fault of Ray means for us: words for operators, and what is to be done about the actor.

Decides by the names of the fault's classes, nearest first: nothing of Ray is imported here, and nothing of what Ray
says reaches a client. Requests that were open fail with EngineLost whatever the fault. Does not know: actors, requests.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto


class Remedy(Enum):
    """What is done before the next attempt."""

    ATTACH = auto()
    """Nothing: the actor is there, or Ray brings it back."""
    CREATE = auto()
    """The actor is gone for good: its name is free, and a new one is asked for."""
    WAIT_FOR_OPERATOR = auto()
    """No attempt can succeed before somebody changes something; attempts go on all the same."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """`words` go to operators, without a full stop. `has_died`: the process has gone, or is
    likely to have: requests that it died with are under suspicion."""

    words: str
    remedy: Remedy
    has_died: bool = False


UNKNOWN = Trouble("Ray reported a fault", Remedy.CREATE)

TROUBLES: dict[str, Trouble] = {
    "ActorDiedError": Trouble("its actor died", Remedy.CREATE, has_died=True),
    "ActorUnavailableError": Trouble("its actor cannot be reached just now", Remedy.ATTACH, has_died=True),
    "ActorUnschedulableError": Trouble("no machine of the cluster has what it needs", Remedy.WAIT_FOR_OPERATOR),
    "ActorPlacementGroupRemoved": Trouble("its bundles were removed", Remedy.CREATE),
    "ActorHandleNotFoundError": Trouble("its actor is not known to the cluster", Remedy.CREATE),
    "RayActorError": Trouble("its actor failed", Remedy.CREATE, has_died=True),
    "TaskCancelledError": Trouble("its stream was cancelled", Remedy.ATTACH),
    "AsyncioActorExit": Trouble("its actor has ended", Remedy.CREATE),
    "RayTaskError": Trouble("its actor failed in our own code", Remedy.ATTACH),
    "InvalidAuthToken": Trouble("the cluster refused our token", Remedy.WAIT_FOR_OPERATOR),
    "AuthenticationError": Trouble("the cluster refused our token", Remedy.WAIT_FOR_OPERATOR),
    "RuntimeEnvSetupError": Trouble("its environment could not be set up", Remedy.WAIT_FOR_OPERATOR),
    "GetTimeoutError": Trouble("it did not answer in time", Remedy.ATTACH),
    "NodeDiedError": Trouble("its machine is gone", Remedy.CREATE, has_died=True),
    "LocalRayletDiedError": Trouble("Ray on this machine has ended", Remedy.CREATE),
    "ObjectStoreFullError": Trouble("Ray's object store is full", Remedy.ATTACH),
    "OutOfMemoryError": Trouble("its machine ran out of memory", Remedy.CREATE, has_died=True),
    "OutOfDiskError": Trouble("its machine ran out of disk", Remedy.ATTACH),
    "ObjectLostError": Trouble("something was lost between the machines", Remedy.ATTACH),
    "PendingCallsLimitExceeded": Trouble("it does not keep up", Remedy.ATTACH),
    "RpcError": Trouble("the cluster cannot be reached", Remedy.ATTACH),
    "RaySystemError": Trouble("Ray itself failed", Remedy.CREATE),
    "ConnectionError": Trouble("the cluster cannot be reached", Remedy.CREATE),
    "TimeoutError": Trouble("it did not answer in time", Remedy.ATTACH),
    "StopAsyncIteration": Trouble("its stream has ended", Remedy.ATTACH),
    "SpecMismatch": Trouble(
        "an actor of this name was made with other settings: retire it, or choose another ray.name",
        Remedy.WAIT_FOR_OPERATOR,
    ),
    "UnknownKind": Trouble("its actor cannot make such an engine", Remedy.WAIT_FOR_OPERATOR),
    "ActorAbsent": Trouble("its actor is not there", Remedy.CREATE),
    "HostRetired": Trouble("its actor has just been retired", Remedy.CREATE),
    "SessionRefused": Trouble("its actor has too many servers", Remedy.ATTACH),
    "OtherVersion": Trouble(
        "its actor runs another version of Tidegate: retire it, or choose another ray.name", Remedy.WAIT_FOR_OPERATOR
    ),
    "FramingError": Trouble("its stream broke", Remedy.ATTACH),
    "StreamBroken": Trouble("its stream broke", Remedy.ATTACH),
}

SAID: dict[str, Trouble] = {
    "InvalidAuthToken": TROUBLES["InvalidAuthToken"],
    "Version mismatch": Trouble(
        "the cluster runs another version of Ray or of Python than this server", Remedy.WAIT_FOR_OPERATOR
    ),
    "No module named 'tidegate": Trouble(
        "Tidegate is not installed on the machine of its actor", Remedy.WAIT_FOR_OPERATOR
    ),
}
"""What Ray says without a class of its own for it."""

_SAYS_WHY = frozenset({"UnknownKind"})
"""Raised by our own code for operators: what it says is theirs to read."""


def trouble_of(fault: BaseException) -> Trouble:
    """Returns what a fault means. What was raised inside an actor is named by the class that Ray makes of both."""
    said = str(fault)
    for words, trouble in SAID.items():
        if words in said:
            return trouble
    own = next((TROUBLES[name] for name in _causes(fault) if name in _SAYS_WHY), None)
    if own is not None:
        return replace(own, words=f"{own.words}: {str(getattr(fault, 'cause', fault)).rstrip('.')}")
    names = [kind.__name__ for kind in type(fault).__mro__]
    return next((TROUBLES[name] for name in [*_causes(fault), *names] if name in TROUBLES), UNKNOWN)


def _causes(fault: BaseException) -> list[str]:
    return [kind.__name__.removeprefix("RayTaskError(").removesuffix(")") for kind in type(fault).__mro__]
