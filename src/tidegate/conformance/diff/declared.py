"""Changes that somebody meant: read from a file, or known of a version of Tidegate's contract.

Decides which differences they cover, and which of them covered none. A declared change turns a regression into an
intended one; it says nothing of what it does not name.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from tidegate.conformance.diff.difference import Aspect, Difference, Meaning


class ChangesError(Exception):
    """The file cannot be used; the message names the entry and the field."""


@dataclass(frozen=True, slots=True)
class Change:
    """Patterns are like `errors.*`. `old` and `new`: as the comparison shows them, or None for any. `contract`: the
    version of Tidegate's contract that brought it; it holds where the new server's version is at least that, and the
    old one's is less.
    """

    reason: str
    case: str = "*"
    aspect: Aspect | None = None
    where: str = "*"
    old: str | None = None
    new: str | None = None
    contract: tuple[int, int] | None = None

    def covers(self, difference: Difference) -> bool:
        """Says whether the difference is this change."""
        return (
            (self.aspect is None or self.aspect is difference.aspect)
            and fnmatchcase(difference.case_id, self.case)
            and fnmatchcase(difference.where, self.where)
            and self.old in (None, show(difference.old))
            and self.new in (None, show(difference.new))
        )


CONTRACT_CHANGES: tuple[Change, ...] = ()
"""Changes of meaning that a version of Tidegate's contract brought. 1.0 is the first."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What holds of two servers, and which of it was not seen."""

    differences: list[Difference]
    unseen: list[Change] = field(default_factory=list)


def show(value: Any) -> str:
    """Returns a value as it is shown and declared: text as it is, no value as `none`, several with commas."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, frozenset | tuple | list):
        parts = sorted(map(show, value)) if isinstance(value, frozenset) else map(show, value)
        return ", ".join(parts)
    return str(value)


def read_changes(text: str) -> list[Change]:
    """Returns the changes of a TOML document with `[[change]]` tables. Raises ChangesError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ChangesError(f"not TOML: {error}") from None
    for name in document:
        if name != "change":
            raise ChangesError(f"{name}: not known; changes stand in [[change]] tables")
    tables = document.get("change", [])
    if not isinstance(tables, list):
        raise ChangesError("change: must be tables, each begun by [[change]]")
    return [_read_change(table, f"change {number}") for number, table in enumerate(tables, 1)]


_FIELDS = ("reason", "case", "aspect", "where", "old", "new", "contract")


def _read_change(table: Any, name: str) -> Change:
    if not isinstance(table, dict):
        raise ChangesError(f"{name}: must be a table")
    for key in table:
        if key not in _FIELDS:
            raise ChangesError(f"{name}.{key}: not known; there are {', '.join(_FIELDS)}")
    texts = {key: str(value) for key, value in table.items() if key not in ("aspect", "contract")}
    if not texts.get("reason"):
        raise ChangesError(f"{name}.reason: is missing; say who wanted the change, and why")
    if not table.keys() - {"reason"}:
        raise ChangesError(f"{name}: names nothing, and so would cover everything; give case, aspect or where")
    return Change(
        **texts,
        aspect=_read_aspect(table.get("aspect"), name),
        contract=None if "contract" not in table else read_version(str(table["contract"]), f"{name}.contract"),
    )


def _read_aspect(text: Any, name: str) -> Aspect | None:
    if text is None:
        return None
    try:
        return Aspect(text)
    except ValueError:
        known = ", ".join(aspect.value for aspect in Aspect)
        raise ChangesError(f"{name}.aspect: {text!r} is not one of {known}") from None


def read_version(text: str, name: str) -> tuple[int, int]:
    """Returns major and minor number. Raises ChangesError."""
    major, _, minor = text.partition(".")
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        raise ChangesError(f"{name}: {text!r} is not a version like 1.2")
    return int(major), int(minor)


def apply_changes(
    differences: Sequence[Difference],
    changes: Sequence[Change],
    versions: tuple[tuple[int, int] | None, tuple[int, int] | None],
) -> Declared:
    """Returns the differences with declared ones turned into intended changes. `versions`: of the contract, as the old
    and the new server tell them.
    """
    holding = [change for change in (*changes, *CONTRACT_CHANGES) if _holds(change, versions)]
    seen: set[int] = set()
    found: list[Difference] = []
    for difference in differences:
        match = next((i for i, change in enumerate(holding) if change.covers(difference)), None)
        if match is not None:
            seen.add(match)
            if difference.meaning is Meaning.REGRESSION:
                difference = replace(difference, meaning=Meaning.INTENDED, because=holding[match].reason)
        found.append(difference)
    unseen = [change for i, change in enumerate(holding) if i not in seen and change in changes]
    return Declared(found, unseen)


def _holds(change: Change, versions: tuple[tuple[int, int] | None, tuple[int, int] | None]) -> bool:
    if change.contract is None:
        return True
    old, new = versions
    return new is not None and new >= change.contract and (old is None or old < change.contract)
