"""Scores and rankings outward: what the engine read, to one number for each pair (see `model_tasks.Method`).

| method | read for a pair | raw | activated |
|---|---|---|---|
| head | both texts together | the head's output | its sigmoid |
| likelihood | a question, once with each answer | log-odds of yes against no | probability of yes among the two |
| cosine | each text by itself | the cosine | the same |
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.contract.codec import encode_json
from tidegate.contract.score import RankedDocument, RankedResult, Ranking, Score, ScoreList
from tidegate.inference.event import PromptLikelihood, PromptVector, StreamEvent
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.model_tasks import Method
from tidegate.serving.usage import TokenCounts
from tidegate.serving.vectors import cosine, read_floats, sigmoid


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """`parts[i]` are the prompts that pair `i` is made of: one, or two in order."""

    method: Method
    parts: Sequence[tuple[int, ...]]
    use_activation: bool = True


class PairScores:
    """Collects what was read, and turns it into scores."""

    def __init__(self, plan: ScorePlan) -> None:
        self._plan = plan
        self._vectors: dict[int, bytes] = {}
        self._likelihoods: dict[int, float] = {}

    def feed(self, index: int, event: StreamEvent) -> None:
        """Takes what one prompt came to. Raises RuntimeError for a head with another number of outputs than one."""
        match event:
            case PromptVector(numbers):
                if self._plan.method is Method.HEAD and len(numbers) != 4:
                    raise RuntimeError(f"the head has {len(numbers) // 4} outputs, and scores pairs with one")
                self._vectors[index] = numbers
            case PromptLikelihood(logprob):
                self._likelihoods[index] = logprob
            case _:
                raise TypeError(type(event).__name__)

    def values(self) -> list[float]:
        """Returns one score for each pair."""
        return [self._value(part) for part in self._plan.parts]

    def _value(self, part: tuple[int, ...]) -> float:
        match self._plan.method:
            case Method.COSINE:
                return cosine(self._vectors[part[0]], self._vectors[part[1]])
            case Method.HEAD:
                raw = float(read_floats(self._vectors[part[0]])[0])
            case Method.LIKELIHOOD:
                raw = self._likelihoods[part[0]] - self._likelihoods[part[1]]
        return sigmoid(raw) if self._plan.use_activation else raw


class ScoreAssembler(PairScores):
    """The answer of /v1/score: one score for each pair, in order."""

    def __init__(self, identity: ReplyIdentity, plan: ScorePlan) -> None:
        super().__init__(plan)
        self._identity = identity
        self.num_numbers = len(plan.parts)

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        body = ScoreList(
            id=self._identity.reply_id,
            created=self._identity.created,
            model=self._identity.model,
            data=[Score(index=index, score=value) for index, value in enumerate(self.values())],
            usage=counts.to_read_wire(),
        )
        return encode_json(body)


@dataclass(frozen=True, slots=True)
class RankingForm:
    """What of a ranking is returned: the best `top_n`, or all; with the texts of `documents` where they are given."""

    top_n: int | None = None
    documents: Sequence[str] | None = None


class RankingAssembler(PairScores):
    """The answer of /v1/rerank: the most relevant first, of equals the one that was given first."""

    def __init__(self, identity: ReplyIdentity, plan: ScorePlan, form: RankingForm) -> None:
        super().__init__(plan)
        self._identity = identity
        self._form = form
        self.num_numbers = len(plan.parts)

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        ranked = sorted(enumerate(self.values()), key=lambda pair: -pair[1])[: self._form.top_n]
        body = Ranking(
            id=self._identity.reply_id,
            created=self._identity.created,
            model=self._identity.model,
            results=[self._result(index, value) for index, value in ranked],
            usage=counts.to_read_wire(),
        )
        return encode_json(body)

    def _result(self, index: int, value: float) -> RankedResult:
        if self._form.documents is None:
            return RankedResult(index=index, relevance_score=value)
        document = RankedDocument(text=self._form.documents[index])
        return RankedResult(index=index, relevance_score=value, document=document)
