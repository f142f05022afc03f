"""What an engine actor is made of: which engine, and what Ray is asked for on its behalf. Pure."""

import hashlib
from typing import Literal

import msgspec

from tidegate.engine.options import EngineOptions

Strategy = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]
DIGEST_CHARS = 16


class HostedEngineSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the actor builds. `kind` is a name in `hosted_engine.py`; `process` concerns engines of our own process,
    `settings` whatever another kind is made from, as JSON. `lease_s`: how long a server may be silent.
    """

    kind: str
    lease_s: float
    process: EngineOptions | None = None
    settings: msgspec.Raw = msgspec.Raw(b"null")
    stall_timeout_s: float = 60.0
    restart_wait_s: float = 0.25

    @property
    def digest(self) -> str:
        """Identifies it: two servers share an actor only where they want the same one.

        Every value counts, whether somebody wrote it down or it is the default: encoding leaves out some defaults, and
        others that only equal them not.
        """
        values = msgspec.structs.asdict(self)
        values["process"] = None if self.process is None else msgspec.structs.asdict(self.process)
        return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()[:DIGEST_CHARS]


class ActorNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What Ray gives the actor. With `bundles` the actor is in the first of them, and what its engine starts in all;
    then its own needs are those of the first bundle. `max_restarts` None: as often as it dies. `is_detached`: it
    outlives the server that had it made, and other servers share it by its name.
    """

    num_cpus: float = 1.0
    num_gpus: float = 0.0
    memory_bytes: int | None = None
    resources: dict[str, float] = {}
    bundles: tuple[dict[str, float], ...] = ()
    strategy: Strategy = "PACK"
    max_restarts: int | None = None
    is_detached: bool = False

    @property
    def in_words(self) -> str:
        """What a machine must have free, or several of them: for people."""
        places = self.bundles or (
            {"CPU": self.num_cpus, "GPU": self.num_gpus, "memory": float(self.memory_bytes or 0), **self.resources},
        )
        words = (" ".join(f"{name}={amount:g}" for name, amount in place.items() if amount) for place in places)
        return " and ".join(f"a place with {one or 'nothing in particular'}" for one in words)


def encode_spec(spec: HostedEngineSpec) -> bytes:
    """Returns the specification as JSON."""
    return msgspec.json.encode(spec, order="deterministic")


def decode_spec(data: bytes) -> HostedEngineSpec:
    """Returns the specification in `data`. Raises msgspec.ValidationError."""
    return msgspec.json.decode(data, type=HostedEngineSpec)
