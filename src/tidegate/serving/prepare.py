"""What every preparation needs, and the steps that they share: decode, check fields, tokens to an engine request."""

import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from tidegate.clock import Clock
from tidegate.contract.unknown_fields import UnknownFieldPolicy, reported_fields, unknown_fields
from tidegate.errors import ContextLengthExceeded, LimitFact, UnsupportedParameter
from tidegate.ids import mint_id
from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.hop import HopLabels
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.lifecycle.deadline import TimeLimit, fix_deadlines
from tidegate.lifecycle.principal import Principal
from tidegate.parsers.tool_format import ChannelCalls, ToolFormat
from tidegate.parsers.tool_grammar import MarkerTokens
from tidegate.serving.cache_scope import cache_scope
from tidegate.serving.call import Call
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.constraint import Constraint
from tidegate.serving.constraint_rules import constraint_of
from tidegate.serving.header_rules import HeaderWishes
from tidegate.serving.model_tasks import generation_reason
from tidegate.serving.output_reading import PLAIN_READING, OutputReading
from tidegate.serving.prepared import CallContext, PreparedPrompt
from tidegate.serving.reasoned_constraint import place_answer
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.request_rules import check_replaced_fields
from tidegate.serving.sampling_rules import (
    GeneratingRequest,
    LogprobCounts,
    check_choosable,
    logprob_counts,
    sampling_params,
    stop_rules,
    stop_strings,
    token_budget,
)
from tidegate.serving.script_rules import PlannedScript
from tidegate.serving.served_model import ServedModel
from tidegate.serving.tool_constraint import tool_constraint
from tidegate.serving.tool_use import NO_TOOLS, ToolUse
from tidegate.text.vocabulary import Vocabulary

ID_ENTROPY_BYTES = 24
PACKED_TOKEN_BYTES = 4
_SEED_BYTES = 8

Request = TypeVar("Request", bound=msgspec.Struct)


class TimedRequest(Protocol):
    """What every request that the engine works on may say of its own urgency."""

    @property
    def priority(self) -> int | None: ...

    @property
    def deadline_ms(self) -> int | None: ...

    @property
    def first_token_deadline_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class MaxDeadlines:
    """The server's own limits on the time of a request, in milliseconds; None for none."""

    whole_ms: int | None = None
    first_token_ms: int | None = None


NO_MAXIMUM = MaxDeadlines()


@dataclass(frozen=True, slots=True)
class Preparation:
    """The world as a preparation sees it: the model, what its engine says, the operator's choices, time, entropy."""

    model: ServedModel
    info: ModelInfo
    unknown_policy: UnknownFieldPolicy
    clock: Clock
    entropy: Callable[[int], bytes]
    max_deadlines: MaxDeadlines = NO_MAXIMUM

    @property
    def policy(self) -> RequestPolicy:
        return RequestPolicy(self.model.limits, unserved_fields=frozenset(self.info.unserved_fields))

    def decode(
        self, call: Call, decoder: Callable[..., Request], kind: type[Request]
    ) -> tuple[Request, tuple[str, ...]]:
        """Returns the request, and the unknown fields to report. Raises InvalidRequest."""
        request = decoder(call.body, self.model.limits)
        unknown = unknown_fields(call.body, kind, self.model.limits)
        check_replaced_fields(unknown)
        return request, tuple(reported_fields(unknown, self.unknown_policy))

    def check_model(self, name: str | None, principal: Principal) -> str:
        """Returns the name that the answer carries. Raises ModelNotFound and ModelNotAllowed."""
        return self.model.check_name(name, principal)

    def check_generates(self) -> None:
        """Raises UnsupportedParameter where the served model writes no text."""
        reason = generation_reason(self.info)
        if reason is not None:
            raise UnsupportedParameter(f"model: {reason}", param="model")

    def context(self, call: Call, prefix: str, wishes: HeaderWishes, request: TimedRequest) -> CallContext:
        """Mints the reply's id; the caller's own id is for tracing only."""
        principal = call.principal
        return CallContext(
            request_id=mint_id(prefix, self.entropy(ID_ENTROPY_BYTES)),
            wire_id=call.wire_id,
            route=call.route,
            received_at=call.received_at,
            created=int(self.clock.wall()),
            num_retries=call.num_retries,
            priority=principal.clamp_priority(wishes.priority if request.priority is None else request.priority),
            deadlines=fix_deadlines(
                call.received_at,
                [
                    TimeLimit(wishes.deadline_ms, "request"),
                    TimeLimit(request.deadline_ms, "request"),
                    TimeLimit(principal.deadline_max_ms, "key"),
                    TimeLimit(self.max_deadlines.whole_ms, "server"),
                ],
                [
                    TimeLimit(wishes.first_token_deadline_ms, "request"),
                    TimeLimit(request.first_token_deadline_ms, "request"),
                    TimeLimit(self.max_deadlines.first_token_ms, "server"),
                ],
            ),
            principal=principal,
            record=call.record,
            hop=None if call.trace is None else call.trace.hop(call.wire_id),
            trace=call.trace,
        )

    def fingerprint(self) -> str:
        """Returns `system_fingerprint`: the served revision, as the header says it."""
        return self.model.revision(self.info)

    def check_length(self, num_characters: int, param: str) -> None:
        """Refuses text that cannot fit whatever its tokens are, before any template or tokenizer sees it."""
        least = -(-num_characters // self.model.longest_token_bytes)
        if least > self.info.max_model_len:
            raise ContextLengthExceeded(
                f"the context holds {self.info.max_model_len} tokens; this text has at least {least}",
                param=param,
                limit=LimitFact("context_length", self.info.max_model_len, least),
            )

    def constraint(
        self, request: GeneratingRequest, use: ToolUse = NO_TOOLS, form: ToolFormat | None = None
    ) -> Constraint | None:
        """Returns what the output shall be held to, calls of tools written in `form` included; None where it is free.

        Raises InvalidRequest, and UnsupportedParameter where nobody holds output to anything.
        """
        answer = constraint_of(request, self.model.limits)
        place = answer.param.partition(".")[0] if answer is not None else use.enforced_place
        reason = self.model.grammar_reason(self.info)
        if place is not None and reason is not None:
            raise UnsupportedParameter(f"{place}: {reason}", param=place)
        if form is None:
            return answer
        if answer is not None and isinstance(form.style, ChannelCalls):
            answer = place_answer(answer, form.style, self.marker_tokens())
        return tool_constraint(use, form, self.marker_tokens(), answer)

    def marker_tokens(self) -> MarkerTokens:
        """Returns what the vocabulary knows of markers."""
        return MarkerTokens(self.model.controls.ids.get, frozenset(self.info.eos_token_ids))

    def encode_plain(self, text: str) -> list[int]:
        return self.model.tokenizer.encode(text, add_special=False, parse_special=False)

    def sampling(self, request: GeneratingRequest) -> SamplingParams:
        minted = int.from_bytes(self.entropy(_SEED_BYTES), "little", signed=True)
        return sampling_params(request, vocab_size=self.info.vocab_size, encode=self.encode_plain, minted_seed=minted)


@dataclass(frozen=True, slots=True)
class PromptSource:
    """One prompt: its tokens, the vocabulary that its output is read with, and where it stands in the call.

    `starts_after`: see `GrammarRule`; where reasoning ends, which comes before what the constraint is about.
    """

    token_ids: list[int]
    vocabulary: Vocabulary
    request_id: str = ""
    priority: int = 0
    text_start: int = 0
    echo_text: str | None = None
    constraint: Constraint | None = None
    reading: OutputReading = PLAIN_READING
    starts_after: tuple[tuple[int, ...], ...] = ()
    key_id: str = ""
    hop: HopLabels | None = None


def prepare_prompt(
    request: GeneratingRequest,
    source: PromptSource,
    preparation: Preparation,
    sampling: SamplingParams,
    planned: PlannedScript | None,
) -> PreparedPrompt:
    """Returns one prompt for the engine. Raises ContextLengthExceeded and InvalidValue."""
    info = preparation.info
    budget = token_budget(
        request,
        num_prompt_tokens=len(source.token_ids),
        max_model_len=info.max_model_len,
        limits=preparation.model.limits,
    )
    stop = stop_rules(request, max_tokens=budget, vocab_size=info.vocab_size)
    check_choosable(sampling, stop, vocab_size=info.vocab_size, eos_ids=info.eos_token_ids)
    counts = logprob_counts(request)
    inference = InferenceRequest(
        request_id=source.request_id,
        prompt=pack_token_ids(source.token_ids),
        sampling=sampling,
        stop=stop,
        num_choices=request.n or 1,
        num_logprobs=counts.num_output,
        num_prompt_logprobs=counts.num_prompt,
        priority=source.priority,
        cache_salt=cache_scope(source.key_id, request.cache_salt),
        script=planned.script if planned is not None else None,
        grammar=_grammar_rule(source, preparation),
        hop=source.hop,
    )
    plan = _choice_plan(request, source, counts, preparation)
    return PreparedPrompt(inference, plan, source.token_ids, source.echo_text)


def _grammar_rule(source: PromptSource, preparation: Preparation) -> GrammarRule | None:
    """A script plays as it is written: it is not told of a constraint."""
    if source.constraint is None or preparation.model.is_scripted:
        return None
    return GrammarRule(source.constraint.spec, source.starts_after)


def _choice_plan(
    request: GeneratingRequest, source: PromptSource, counts: LogprobCounts, preparation: Preparation
) -> ChoicePlan:
    stops = stop_strings(request)
    skip_special = request.skip_special_tokens is not False
    model = preparation.model
    is_own_vocabulary = source.vocabulary is model.tokenizer.vocabulary
    return ChoicePlan(
        vocabulary=source.vocabulary,
        stop_strings=stops.strings,
        include_stop=stops.include_match,
        min_tokens=stops.min_tokens,
        skip_special=skip_special,
        want_logprobs=counts.num_output is not None,
        want_token_ids=bool(request.return_token_ids),
        text_start=source.text_start,
        eos_token_ids=frozenset(preparation.info.eos_token_ids),
        visible_ids=source.reading.visible_ids,
        make_parser=source.reading.make_parser,
        allows_many_calls=source.reading.allows_many_calls,
        calls_finish=source.reading.calls_finish,
        text_memo=model.text_memo[skip_special] if is_own_vocabulary else None,
    )


def pack_token_ids(token_ids: Sequence[int]) -> bytes:
    """Returns ids as little-endian unsigned 32-bit integers, the engine's form of a prompt."""
    packed = array("I", token_ids)
    if packed.itemsize != PACKED_TOKEN_BYTES:
        raise RuntimeError("this platform's unsigned int has no 32 bits")
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
