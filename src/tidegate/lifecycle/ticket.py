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
    model: str = ""
    """A name of the model that is asked for, where there are several."""

    @property
    def num_tokens(self) -> int:
        """What the request takes from a token quota until it is known what it used."""
        return self.num_prompt_tokens + self.num_output_tokens

    @property
    def must_start_by(self) -> float | None:
        """The instant after which a first token comes too late: an answer cannot end before it begins."""
        if self.first_token_by is None or self.finish_by is None:
            return self.finish_by if self.first_token_by is None else self.first_token_by
        return min(self.first_token_by, self.finish_by)
