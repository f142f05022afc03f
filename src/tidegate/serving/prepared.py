"""What preparation makes of a call: everything that is decided before the engine hears of it."""

from dataclasses import dataclass, field

from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.deadline import NO_DEADLINES, Deadlines
from tidegate.lifecycle.principal import ANONYMOUS, Principal
from tidegate.observability.access_log import AccessRecord
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.constraint import Constraint


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who asked, when, and what the answer is called. `received_at` is monotonic, `created` seconds since the epoch."""

    request_id: str
    wire_id: str
    route: str
    received_at: float
    created: int
    num_retries: int = 0
    priority: int = 0
    """What header or body asks for, as far as the caller may."""
    deadlines: Deadlines = NO_DEADLINES
    principal: Principal = ANONYMOUS
    record: AccessRecord = field(default_factory=AccessRecord)


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """One prompt for the engine, and how to read the output of its choices."""

    request: InferenceRequest
    plan: ChoicePlan
    token_ids: list[int]
    echo_text: str | None = None
    """The prompt's text, when it is to precede each choice's."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """One call. Choice `j` of prompt `i` has index `i * num_choices + j`.

    `num_top` is the number of alternatives beside the chosen token, None without log-probabilities.
    """

    context: CallContext
    model: str
    fingerprint: str
    prompts: list[PreparedPrompt]
    num_choices: int
    is_stream: bool
    include_usage: bool = False
    continuous_usage: bool = False
    num_top: int | None = None
    want_token_ids: bool = False
    want_prompt_logprobs: bool = False
    is_legacy: bool = False
    """Made with the deprecated `functions`, and answered in the same words."""
    ignored_fields: tuple[str, ...] = field(default=())
    block_tokens: int = 16
    """Tokens in a block of the engine's KV cache."""
    constraint: Constraint | None = None
    """What the output is held to, before it is known whether it can be."""

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(prompt.token_ids) for prompt in self.prompts)

    @property
    def num_peak_blocks(self) -> int:
        """KV blocks that the call holds when every choice has its longest output, and choices share none."""
        lengths = [len(prompt.token_ids) + prompt.request.stop.max_tokens for prompt in self.prompts]
        return self.num_choices * sum(-(-length // self.block_tokens) for length in lengths)
