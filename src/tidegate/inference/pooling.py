"""Reading a text into one vector instead of writing one: embeddings and the scores of classifiers."""

from enum import StrEnum

import msgspec


class PoolingTask(StrEnum):
    """What a request without generation wants of its prompt."""

    EMBED = "embed"
    """The model's hidden states, pooled over the prompt as the model's metadata says."""
    CLASSIFY = "classify"
    """The outputs of a classification head: one for each label, or a single one that ranks a pair."""


class PoolingMode(StrEnum):
    """How hidden states of a prompt become one vector."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "last"
    RANK = "rank"
    """Through the model's classification head."""


class PoolingInfo(msgspec.Struct, frozen=True, array_like=True):
    """What a loaded model makes of a prompt that is only read."""

    mode: PoolingMode
    dimensions: int
    """Length of a vector of `PoolingTask.EMBED`."""
    max_input_tokens: int
    """Longest prompt."""
    labels: tuple[str, ...] = ()
    """Names of the classification head's outputs, where it has one."""
