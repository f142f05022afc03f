"""Case: one question to a server, as data: what is asked, what must hold of the answers, and why a client cares.

Does not know: sockets, time, how a verdict comes about.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.verdict import Fault


class Severity(Enum):
    """What a failure does to a client, worst first."""

    BREAKS_CLIENTS = "breaks clients"
    WRONG_DATA = "wrong data"
    WRONG_BILL = "wrong bill"
    NUISANCE = "nuisance"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Profile(Enum):
    """Who promised it: everyone who speaks this API, or only who speaks our contract."""

    OPENAI = "openai"
    TIDEGATE = "tidegate"


class Turn(Enum):
    """Whom a case may run beside."""

    SHARED = "beside other cases"
    ALONE = "alone"
    LAST = "after all others: the server does not serve afterwards"


Check = Callable[..., Iterator[Fault]]
"""A named assertion: exchanges by position, arguments by name; yields what is wrong. May raise CannotTell, and Refused
where the server said honestly that it does not serve what was asked."""


@dataclass(frozen=True, slots=True)
class Expect:
    """One assertion on the exchanges of the named asks.

    `on`: the names, one exchange each. A single name with several copies is checked copy by copy, unless `over_copies`:
    then the check gets one tuple with the exchanges of all copies.
    """

    check: Check
    on: tuple[str, ...] = ("it",)
    args: Mapping[str, Any] = field(default_factory=dict)
    over_copies: bool = False


def expect(check: Check, *on: str, **args: Any) -> Expect:
    """Returns an assertion on single exchanges; on `it` where no name is given."""
    return Expect(check, on or ("it",), args)


def expect_over(check: Check, name: str, **args: Any) -> Expect:
    """Returns an assertion on all copies of one ask at once."""
    return Expect(check, (name,), args, over_copies=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question.

    `id`: `area.what`, in lower case; the area is the file of the catalogue. `title`: what must be so, one sentence.
    `why`: what happens to a client where it is not. `clauses`: ids in `clauses`. `needs`: what the server must be able
    to do; without it the verdict is `unsupported`. `repeats`: runs, of which each must hold. `tries`: further runs
    with other markers and seeds, while the model did not cooperate (CannotTell).
    """

    id: str
    title: str
    why: str
    clauses: tuple[str, ...]
    severity: Severity
    profile: Profile = Profile.OPENAI
    needs: tuple[Capability, ...] = ()
    asks: tuple[Ask, ...]
    expects: tuple[Expect, ...]
    turn: Turn = Turn.SHARED
    repeats: int = 1
    tries: int = 1

    @property
    def area(self) -> str:
        """The part of the id before its first point."""
        return self.id.partition(".")[0]


Catalogue = Sequence[Case]
