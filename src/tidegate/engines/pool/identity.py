"""What makes two engines interchangeable: the facts of a model that an answer may depend on."""

from typing import NamedTuple

from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo


class ModelIdentity(NamedTuple):
    """Equal for engines of which a caller cannot tell one from the other. Sizes and memory are no part of it."""

    weights: str
    build: str
    grammar_backend: str | None
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    generates: bool
    pooling: PoolingInfo | None


def identity_of(info: ModelInfo) -> ModelIdentity:
    """Returns the identity of what an engine runs."""
    return ModelIdentity(
        weights=info.weights_digest,
        build=info.build,
        grammar_backend=info.grammar_backend,
        vocab_size=info.vocab_size,
        eos_token_ids=info.eos_token_ids,
        generates=info.generates,
        pooling=info.pooling,
    )


def differences(one: ModelIdentity, other: ModelIdentity) -> str:
    """Returns in words what differs, as in `weights (ab12 and cd34)`; empty for equal ones."""
    pairs = zip(one._fields, one, other, strict=True)
    return ", ".join(f"{name} ({_short(a)} and {_short(b)})" for name, a, b in pairs if a != b)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else text[:24] + "..."
