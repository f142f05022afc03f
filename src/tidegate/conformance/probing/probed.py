"""Probed: what was found out about a server before the cases run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.conformance.probing.capability import Capability


@dataclass(frozen=True, slots=True)
class Probed:
    """`capabilities`: what was found; `absent`: why the others were not; `found_by`: how it was seen that one is there.
    `identity`: how the server names itself: `server` (its header), `fingerprint`, `revision`, `contract` (version),
    `owned_by`; only what it says.
    """

    model: str
    capabilities: frozenset[Capability]
    absent: Mapping[Capability, str]
    is_scripted: bool
    has_contract: bool
    found_by: Mapping[Capability, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
