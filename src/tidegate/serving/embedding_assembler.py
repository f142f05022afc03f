"""Embeddings outward: each input's vector to its row, whichever way and in whatever order they came."""

import base64
from dataclasses import dataclass

from tidegate.contract.codec import encode_json
from tidegate.contract.embeddings import Embedding, EmbeddingList
from tidegate.inference.event import PromptVector, StreamEvent
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.usage import TokenCounts
from tidegate.serving.vectors import Floats, shape_embedding


@dataclass(frozen=True, slots=True)
class EmbeddingForm:
    """How rows look: `dimensions` is None for all components that the model has."""

    dimensions: int | None = None
    normalize: bool = True
    is_base64: bool = False


class EmbeddingAssembler:
    """One answer. Rows stand in the order of the inputs."""

    def __init__(self, identity: ReplyIdentity, num_inputs: int, form: EmbeddingForm) -> None:
        self._identity = identity
        self._form = form
        self._vectors: list[Floats | None] = [None] * num_inputs
        self.num_numbers = 0

    def feed(self, index: int, event: StreamEvent) -> None:
        if not isinstance(event, PromptVector):
            raise TypeError(type(event).__name__)
        vector = shape_embedding(event.numbers, self._form.dimensions, normalize=self._form.normalize)
        self._vectors[index] = vector
        self.num_numbers += len(vector)

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        rows = [
            Embedding(index=index, embedding=self._written(vector))
            for index, vector in enumerate(self._vectors)
            if vector is not None
        ]
        return encode_json(EmbeddingList(data=rows, model=self._identity.model, usage=counts.to_read_wire()))

    def _written(self, vector: Floats) -> list[float] | str:
        if self._form.is_base64:
            return base64.b64encode(vector.tobytes()).decode("ascii")
        numbers: list[float] = vector.tolist()
        return numbers
