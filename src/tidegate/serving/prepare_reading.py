"""What the preparations share whose texts are only read: decode, check, encode within the bounds, make the prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from tidegate.contract.bounds import over_limit
from tidegate.contract.classify import ClassifyRequest
from tidegate.contract.embeddings import EmbeddingRequest
from tidegate.contract.score import RerankRequest, ScoreRequest
from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact, UnsupportedParameter
from tidegate.inference.pooling import PoolingInfo, PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.serving.cache_scope import cache_scope
from tidegate.serving.call import Call
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.header_rules import HeaderWishes, read_wishes
from tidegate.serving.prepare import Preparation, pack_token_ids
from tidegate.serving.prepared import PreparedCall, PreparedPrompt, ReadAssembler
from tidegate.serving.prompt_rules import MAX_TOKENIZE_CHARACTERS, Prompt
from tidegate.serving.read_choice import LikelihoodChoice, VectorChoice
from tidegate.serving.reading_rules import check_reading

Request = TypeVar("Request", EmbeddingRequest, ScoreRequest, RerankRequest, ClassifyRequest)
_NOTHING_GENERATED = StopRules(max_tokens=0)


@dataclass(frozen=True, slots=True)
class Reading:
    """One prompt to read: for its vector, or for the likelihood of its last `num_scored` tokens."""

    token_ids: list[int]
    task: PoolingTask | None = None
    num_scored: int = 0


@dataclass(frozen=True, slots=True)
class LengthBound:
    """How many tokens one prompt may have: the published name of the limit, and its value."""

    name: str
    max_tokens: int


class ReadingPreparation(Generic[Request]):
    """One call on its way to a `PreparedCall`. Making it decodes and checks the request."""

    def __init__(
        self, call: Call, preparation: Preparation, decoder: Callable[..., Request], kind: type[Request]
    ) -> None:
        """Raises InvalidRequest, ModelNotFound or ModelNotAllowed."""
        self.preparation = preparation
        self._call = call
        self._wishes: HeaderWishes = read_wishes(call.headers)
        self.request: Request
        self.request, self._ignored = preparation.decode(call, decoder, kind)
        self._model = preparation.check_model(self.request.model, call.principal)
        check_reading(self.request, preparation.policy)

    def require(self, reason: str | None) -> None:
        """Raises UnsupportedParameter with `reason` where the model does not serve this route."""
        if reason is not None:
            raise UnsupportedParameter(f"model: {reason}", param="model")

    @property
    def pooling(self) -> PoolingInfo:
        """How the model pools, where the caller knows that it does."""
        pooling = self.preparation.info.pooling
        assert pooling is not None
        return pooling

    @property
    def pooled_bound(self) -> LengthBound:
        return LengthBound("input_tokens", self.pooling.max_input_tokens)

    @property
    def scored_bound(self) -> LengthBound:
        return LengthBound("context_length", self.preparation.info.max_model_len)

    def encode(self, source: Prompt, param: str, bound: LengthBound) -> list[int]:
        """Returns the tokens of a text, with what the tokenizer adds by default; ids are taken as they are.

        Raises InvalidValue for a text that comes to nothing, ContextLengthExceeded.
        """
        if isinstance(source, str):
            self._check_characters(source, param, bound)
            source = self.preparation.model.tokenizer.encode(source, add_special=True, parse_special=False)
        self.check_length(len(source), param, bound)
        return source

    def check_length(self, num_tokens: int, param: str, bound: LengthBound) -> None:
        """Raises InvalidValue for no tokens, ContextLengthExceeded for more than the bound."""
        if not num_tokens:
            raise InvalidValue(f"{param}: this text has no token that the model could read", param=param)
        if num_tokens > bound.max_tokens:
            raise _too_long(f"has {num_tokens}", param, bound, num_tokens)

    def _check_characters(self, text: str, param: str, bound: LengthBound) -> None:
        """Refuses what cannot fit before it is encoded; where text may shrink, what would take too long."""
        model = self.preparation.model
        if model.keeps_text:
            least = -(-len(text) // model.longest_token_bytes)
            if least > bound.max_tokens:
                raise _too_long(f"has at least {least}", param, bound, least)
        elif len(text) > MAX_TOKENIZE_CHARACTERS:
            raise over_limit(param, "tokenize_characters", value=MAX_TOKENIZE_CHARACTERS, actual=len(text))

    def finish(
        self, prefix: str, readings: Sequence[Reading], make_assembler: Callable[[ReplyIdentity], ReadAssembler]
    ) -> PreparedCall:
        """Returns the call. Where the model also writes, it leaves half of the engine's rows to others."""
        preparation, info = self.preparation, self.preparation.info
        context = preparation.context(self._call, prefix, self._wishes, self.request)
        scope = cache_scope(context.principal.key_id, None)
        plan = ChoicePlan(preparation.model.tokenizer.vocabulary)
        prompts = []
        for i, reading in enumerate(readings):
            is_pooled = reading.task is not None
            inference = InferenceRequest(
                request_id=context.request_id if i == 0 else f"{context.request_id}-{i}",
                prompt=pack_token_ids(reading.token_ids),
                sampling=SamplingParams(),
                stop=_NOTHING_GENERATED,
                num_prompt_logprobs=None if is_pooled else 0,
                priority=context.priority,
                cache_salt=scope,
                pooling=reading.task,
                first_scored=0 if is_pooled else len(reading.token_ids) - reading.num_scored,
                hop=context.hop,
            )
            reader = VectorChoice if is_pooled else partial(LikelihoodChoice, reading.num_scored)
            prompts.append(PreparedPrompt(inference, plan, reading.token_ids, make_reader=reader))
        return PreparedCall(
            context=context,
            model=self._model,
            fingerprint=preparation.fingerprint(),
            prompts=prompts,
            num_choices=1,
            is_stream=False,
            ignored_fields=self._ignored,
            block_tokens=info.block_tokens,
            make_assembler=make_assembler,
            width=max(1, info.max_sequences // 2) if info.generates else info.max_sequences,
        )


def _too_long(has: str, param: str, bound: LengthBound, actual: int) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        f"{param}: the model reads {bound.max_tokens} tokens at once; this text {has}",
        param=param,
        limit=LimitFact(bound.name, bound.max_tokens, actual),
    )
