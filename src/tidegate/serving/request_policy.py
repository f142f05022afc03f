"""What an operator has decided about requests, as far as the rules need it."""

from dataclasses import dataclass, field

from tidegate.contract.bounds import Limits
from tidegate.text.chat_template import RESERVED_VARIABLES


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    limits: Limits = field(default_factory=Limits)
    reserved_template_names: frozenset[str] = RESERVED_VARIABLES
    allows_chat_template: bool = False
    """Whether a request may bring its own chat template."""
    unserved_fields: frozenset[str] = frozenset()
    """Fields that the engine does not honour."""
