"""One choice of one request, and the request that its choices share. Holds facts; decides nothing."""

from array import array
from dataclasses import dataclass, field

from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.sequence_status import TRANSITIONS, SequenceEvent, SequenceStatus, next_status
from tidegate.core.speculative.prompt_lookup import PromptNgrams
from tidegate.core.speculative.state import Speculation
from tidegate.inference.request import InferenceRequest
from tidegate.inference.turn_rule import BY_PRIORITY, TurnRule

Order = tuple[float, int, int]
"""Place in line (`TurnRule.place`), arrival, choice: the least runs first and is preempted last."""


class LiveRequest:
    """A request whose choices have not all finished.

    `grammar` is what was ordered for it: None where it has none, or where the engine enforces none. `num_scored` is
    the position of the next of its prompt logprobs: those before were given out, or are not wanted. `queue_s` is how
    long it waited for its first memory, `num_cached` how many tokens of the prompt were there already.
    """

    __slots__ = (
        "arrival",
        "arrived_at",
        "grammar",
        "is_admitted",
        "is_announced",
        "ngrams",
        "num_cached",
        "num_scored",
        "num_unfinished",
        "place",
        "prompt",
        "queue_s",
        "request",
        "sequences",
    )

    def __init__(
        self,
        request: InferenceRequest,
        *,
        arrival: int,
        arrived_at: float,
        first_key: int,
        grammar: GrammarOrder | None = None,
        turns: TurnRule = BY_PRIORITY,
    ) -> None:
        queue_delay_s = request.script.queue_delay_s if request.script is not None else 0.0
        self.request = request
        self.grammar = grammar
        self.arrival = arrival
        self.arrived_at = arrived_at
        self.place = turns.place(arrived_at, request.priority)
        self.queue_s = 0.0
        # Little-endian machines only: the view has the wire's byte order.
        self.prompt: memoryview[int] = memoryview(request.prompt).cast("I")
        self.sequences = [
            Sequence(key=first_key + choice, live=self, choice=choice, not_before=arrived_at + queue_delay_s)
            for choice in range(request.num_choices)
        ]
        self.num_unfinished = request.num_choices
        self.num_scored = request.first_scored
        self.num_cached = 0
        self.is_announced = False
        self.is_admitted = False
        self.ngrams: PromptNgrams | None = None

    @property
    def needs_prompt_scores(self) -> bool:
        """Whether prompt logprobs were asked for and are not all given out."""
        return self.request.num_prompt_logprobs is not None and self.num_scored < len(self.prompt)


@dataclass(eq=False, slots=True)
class Sequence:
    """One choice. `key` is never used twice; `seq_id`, from a fixed supply, is there while it has memory.

    Positions `0 .. num_computed` are in the cache or in the step under way. `not_before` is the instant until which
    the scheduler leaves it alone. `speculation` is there once drafts were thought of.
    """

    key: int
    live: LiveRequest
    choice: int
    not_before: float
    status: SequenceStatus = SequenceStatus.WAITING
    seq_id: int | None = None
    generated: list[int] = field(default_factory=list)
    num_computed: int = 0
    is_reader_behind: bool = False
    awaits_grammar: bool = False
    is_started: bool = False
    speculation: Speculation | None = None
    order: Order = field(init=False)

    def __post_init__(self) -> None:
        self.order = (self.live.place, self.live.arrival, self.choice)

    @property
    def num_prompt(self) -> int:
        return len(self.live.prompt)

    @property
    def num_tokens(self) -> int:
        """Prompt and generated tokens together."""
        return len(self.live.prompt) + len(self.generated)

    @property
    def num_pending(self) -> int:
        """Tokens that must enter the cache before the next one can be chosen."""
        return self.num_tokens - self.num_computed

    @property
    def is_finished(self) -> bool:
        return not TRANSITIONS[self.status]

    @property
    def is_scoring(self) -> bool:
        """Whether its prefill owes the request's prompt logprobs: choice 0 pays for all."""
        return self.choice == 0 and self.live.needs_prompt_scores

    @property
    def num_reusable(self) -> int:
        """How many of its first tokens need not be computed, where others have them: all but those whose logits are
        owed, the newest token's or the ones that score the prompt's next.
        """
        if self.is_scoring:
            return max(0, self.live.num_scored - 1)
        return max(0, self.num_tokens - 1)

    @property
    def is_held(self) -> bool:
        """Whether it does not run for now, and gives way to all others."""
        return self.is_reader_behind or self.awaits_grammar

    @property
    def has_grammar_on_its_way(self) -> bool:
        return self.live.grammar is not None and self.live.grammar.outcome is None

    def is_due(self, now: float) -> bool:
        return not self.is_held and self.not_before <= now

    def apply(self, event: SequenceEvent) -> None:
        """Raises InternalError when the event is illegal in this status."""
        self.status = next_status(self.status, event)

    def tokens_between(self, start: int, end: int) -> "memoryview[int] | list[int]":
        """Returns the tokens of positions `start .. end`; a view where all are of the prompt."""
        num_prompt = self.num_prompt
        if end <= num_prompt:
            return self.live.prompt[start:end]
        generated = self.generated[max(0, start - num_prompt) : end - num_prompt]
        return [*self.live.prompt[start:num_prompt], *generated]

    def packed(self, start: int, end: int) -> bytes:
        """Returns the tokens of positions `start .. end`, as in `InferenceRequest.prompt`."""
        num_prompt = self.num_prompt
        tokens = self.live.request.prompt[start * 4 : end * 4]
        if end <= num_prompt:
            return tokens
        return tokens + array("I", self.generated[max(0, start - num_prompt) : end - num_prompt]).tobytes()

    def token_at(self, position: int) -> int:
        num_prompt = self.num_prompt
        return self.live.prompt[position] if position < num_prompt else self.generated[position - num_prompt]
