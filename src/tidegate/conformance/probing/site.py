"""Site: what is known of a server before its capabilities are, and what the caller allows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`has_contract`: it says that it keeps Tidegate's contract. `has_key`, `has_admin_url`, `may_drain`: what the
    caller gave and allows.
    """

    has_contract: bool = False
    is_scripted: bool = False
    has_key: bool = False
    has_admin_url: bool = False
    may_drain: bool = False
