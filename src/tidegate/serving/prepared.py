"""What preparation makes of a call: everything that is decided before the engine hears of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.inference.event import StreamEvent
from tidegate.inference.hop import HopLabels
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.deadline import NO_DEADLINES, Deadlines
from tidegate.lifecycle.principal import ANONYMOUS, Principal
from tidegate.observability.access_log import AccessRecord
from tidegate.observability.request_trace import RequestTrace
from tidegate.serving.choice import ChoicePlan, ChoiceStream
from tidegate.serving.choice_reader import ChoiceReader
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.constraint import Constraint
from tidegate.serving.usage import TokenCounts


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
    hop: HopLabels | None = None
    """What engines are told of where the request comes from."""
    trace: RequestTrace | None = None

    @property
    def note(self) -> str:
        """Names the request in a traceback."""
        return f"request {self.request_id}" + ("" if self.trace is None else f", trace {self.trace.trace_id}")


class ReadAssembler(Protocol):
    """Puts the whole answer together of a call of which nothing is generated."""

    @property
    def num_numbers(self) -> int:
        """How many numbers the answer has: a measure of the work of writing it."""
        ...

    def feed(self, index: int, event: StreamEvent) -> None: ...

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """One prompt for the engine, and how to read the output of its choices: `plan` for text, else `make_reader`."""

    request: InferenceRequest
    plan: ChoicePlan
    token_ids: list[int]
    echo_text: str | None = None
    """The prompt's text, when it is to precede each choice's."""
    make_reader: Callable[[], ChoiceReader] | None = None

    def open_choice(self) -> ChoiceReader:
        """Returns the reader of one choice's output."""
        return ChoiceStream(self.plan) if self.make_reader is None else self.make_reader()


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
    given_seed: int | None = None
    """The caller's own; the engine has one in any case."""
    want_prompt_logprobs: bool = False
    is_legacy: bool = False
    """Made with the deprecated `functions`, and answered in the same words."""
    ignored_fields: tuple[str, ...] = field(default=())
    block_tokens: int = 16
    """Tokens in a block of the engine's KV cache."""
    constraint: Constraint | None = None
    """What the output is held to, before it is known whether it can be."""
    make_assembler: Callable[[ReplyIdentity], ReadAssembler] | None = None
    """Of a call of which nothing is generated; None for chats and completions."""
    width: int | None = None
    """How many prompts the engine has at once; None for all."""

    @property
    def num_sequences(self) -> int:
        """Sequences that the engine has at once, at most."""
        num_all = len(self.prompts) * self.num_choices
        return num_all if self.width is None else min(num_all, self.width)

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(prompt.token_ids) for prompt in self.prompts)

    @property
    def num_peak_blocks(self) -> int:
        """KV blocks that the call holds when every choice has its longest output, and choices share none."""
        lengths = [len(prompt.token_ids) + prompt.request.stop.max_tokens for prompt in self.prompts]
        if self.width is not None:
            lengths = sorted(lengths, reverse=True)[: self.width]
        return self.num_choices * sum(-(-length // self.block_tokens) for length in lengths)
