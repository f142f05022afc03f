"""Classifications outward: a head's outputs, or the likelihoods of labels, to one probability for each label."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.contract.classify import Classification, ClassificationList
from tidegate.contract.codec import encode_json
from tidegate.inference.event import PromptLikelihood, PromptVector, StreamEvent
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.usage import TokenCounts
from tidegate.serving.vectors import read_floats, sigmoid, softmax


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """`labels` are None where the model's head has none by name.

    By likelihood, prompt `i * len(labels) + j` tells of input `i` and label `j`; by a head, prompt `i` of input `i`.
    """

    num_inputs: int
    labels: Sequence[str] | None
    is_head: bool = True
    use_activation: bool = True


class ClassAssembler:
    """The answer of /v1/classify: for each input all probabilities, and the label with the greatest."""

    def __init__(self, identity: ReplyIdentity, plan: ClassPlan) -> None:
        self._identity = identity
        self._plan = plan
        self._outputs: list[dict[int, float]] = [{} for _ in range(plan.num_inputs)]

    @property
    def num_numbers(self) -> int:
        return sum(map(len, self._outputs))

    def feed(self, index: int, event: StreamEvent) -> None:
        """Raises RuntimeError for a head that has not one output for each of its labels."""
        labels = self._plan.labels
        match event:
            case PromptVector(numbers):
                values: list[float] = read_floats(numbers).tolist()
                if labels is not None and len(labels) != len(values):
                    raise RuntimeError(f"the head has {len(values)} outputs for {len(labels)} labels")
                self._outputs[index] = dict(enumerate(values))
            case PromptLikelihood(logprob):
                num_labels = len(labels or ())
                self._outputs[index // num_labels][index % num_labels] = logprob
            case _:
                raise TypeError(type(event).__name__)

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        labels = list(self._plan.labels or (f"LABEL_{index}" for index in range(len(self._outputs[0]))))
        body = ClassificationList(
            id=self._identity.reply_id,
            created=self._identity.created,
            model=self._identity.model,
            labels=labels,
            data=[self._row(index, labels) for index in range(self._plan.num_inputs)],
            usage=counts.to_read_wire(),
        )
        return encode_json(body)

    def _row(self, index: int, labels: list[str]) -> Classification:
        outputs = self._outputs[index]
        probs = [outputs[place] for place in range(len(labels))]
        best = probs.index(max(probs))
        if self._plan.use_activation:
            is_single = self._plan.is_head and len(probs) == 1
            probs = [sigmoid(probs[0])] if is_single else softmax(probs)
        return Classification(index=index, label=labels[best], probs=probs, num_classes=len(labels))
