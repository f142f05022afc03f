"""Rules of Tidegate's own contract. Name: (the rule in our words, its section)."""

from collections.abc import Mapping

TIDEGATE: Mapping[str, tuple[str, str]] = {
    "headers.contract": ("`Tidegate-Contract` is `1.MINOR`, on every response.", "CONTRACT.md section 2"),
}
