"""Ticket: what admission is told of one request that wants to enter the engine."""

from dataclasses import dataclass, field

from tidegate.lifecycle.principal import Quotas


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request, all its prompts and choices together. `ticket_id` is unique among live requests.

    Lower `priority` runs first. `num_output_tokens` is the most that may be generated, over all choices.
    `num_blocks` is the price: the KV blocks that the request holds at its peak. Instants are of the monotonic clock;
    None for no deadline.
    """

    ticket_id: str
    key_id: str
    num_choices: int
    num_prompt_tokens: int
    num_output_tokens: int
    num_blocks: int
    received_at: float
    priority: int = 0
    first_token_by: float | None = None
    finish_by: float | None = None
    quotas: Quotas = field(default_factory=Quotas)
