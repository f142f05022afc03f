"""What an operator has decided about requests, as far as the rules need it."""

from dataclasses import dataclass, field

from tidegate.contract.bounds import Limits

RESERVED_TEMPLATE_NAMES = frozenset(
    {
        "add_generation_prompt",
        "bos_token",
        "chat_template",
        "continue_final_message",
        "eos_token",
        "messages",
        "raise_exception",
        "return_dict",
        "strftime_now",
        "tokenize",
        "tools",
    }
)
"""Variables of chat templates that only the server sets."""


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    limits: Limits = field(default_factory=Limits)
    reserved_template_names: frozenset[str] = RESERVED_TEMPLATE_NAMES
    allows_chat_template: bool = False
    """Whether a request may bring its own chat template."""
