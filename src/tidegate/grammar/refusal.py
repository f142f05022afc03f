"""Why a grammar was not compiled: a value, because a caller's schema must never raise where it is compiled."""

from dataclasses import dataclass
from enum import Enum

from tidegate.errors import LimitFact


class RefusalKind(Enum):
    """The codes of CONTRACT.md section 3."""

    INVALID_SCHEMA = "invalid_schema"
    """Not a schema, or not a grammar: nobody could compile it, or nothing satisfies it."""
    UNSUPPORTED_SCHEMA = "unsupported_schema"
    """Valid, and says something that is not enforced exactly."""
    GRAMMAR_TOO_COMPLEX = "grammar_too_complex"


@dataclass(frozen=True, slots=True)
class GrammarRefusal:
    """`path` leads to the keyword at fault as a JSON pointer into the schema; None where there is no single one.

    Of structural tags it leads into the spec: `/tags/0/begin`, `/tags/0/schema/type`.
    """

    kind: RefusalKind
    message: str
    path: str | None = None
    limit: LimitFact | None = None


class Refused(Exception):
    """Carries a refusal up through one compilation; never leaves it."""

    def __init__(self, refusal: GrammarRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def invalid(message: str, path: str | None = None) -> Refused:
    return Refused(GrammarRefusal(RefusalKind.INVALID_SCHEMA, message, path))


def unsupported(message: str, path: str | None = None) -> Refused:
    return Refused(GrammarRefusal(RefusalKind.UNSUPPORTED_SCHEMA, message, path))


def too_complex(message: str, limit: LimitFact | None = None, path: str | None = None) -> Refused:
    return Refused(GrammarRefusal(RefusalKind.GRAMMAR_TOO_COMPLEX, message, path, limit))
