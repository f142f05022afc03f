"""What an engine says about the model that it runs."""

import msgspec

from tidegate.inference.pooling import PoolingInfo


class ModelInfo(msgspec.Struct, frozen=True, array_like=True):
    """Facts of a loaded model. `max_model_len` is the longest sequence, prompt and output together, in tokens."""

    vocab_size: int
    max_model_len: int
    eos_token_ids: tuple[int, ...]
    max_sequences: int
    """How many sequences may run at once."""
    num_blocks: int
    block_tokens: int
    weights_digest: str
    """Hex digest that identifies the weights."""
    build: str
    """Backend name and version, as in `llama_cpp 0.3.36`."""
    grammar_backend: str | None = None
    """Who enforces grammars, with its version, as in `llguidance 1.9.1`; None where nobody does."""
    generates: bool = True
    """Whether the model can write at all: one that only embeds cannot."""
    pooling: PoolingInfo | None = None
    """How prompts that are only read are pooled; None where this engine serves no such requests."""
    prefill_chunk_tokens: int | None = None
    """Most prompt tokens in a step that also decodes."""
    has_prefix_cache: bool = False
    """Whether computed beginnings of prompts are kept for other requests."""
    memory: str | None = None
    """The engine's budget of memory, in lines for people; None where nothing is budgeted."""
    max_step_tokens: int | None = None
    """Most tokens in a step."""
    unserved_fields: tuple[str, ...] = ()
    """Fields of the public API that this engine does not honour: 422 where a caller gives one."""
