"""BERT models as GGUF: the metadata, vocabulary and tensor names that llama.cpp expects of the architecture `bert`.

`write_tiny_bert` makes a random one for tests. Its vectors mean nothing, and are always the same for one seed.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidegate.testing.gguf_file import Tensor, Value, write_gguf

# enum llama_pooling_type
POOLING_TYPES = {"mean": 1, "cls": 2, "last": 3, "rank": 4}
TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL = 1, 2, 3
_WORD_START = "\u2581"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True, slots=True)
class BertShape:
    """Sizes of a BERT model; `max_positions` is its longest input in tokens."""

    num_layers: int
    num_heads: int
    width: int
    inner_width: int
    max_positions: int
    norm_epsilon: float = 1e-12


TINY = BertShape(num_layers=2, num_heads=2, width=32, inner_width=64, max_positions=96)


def bert_metadata(
    shape: BertShape, words: list[str], *, name: str, pooling: str, labels: tuple[str, ...] = ()
) -> dict[str, Value]:
    """Returns the metadata. `words` is a WordPiece vocabulary (`##` continues a word) with BERT's special tokens.

    Raises ValueError when one of those is not in it.
    """
    facts: dict[str, Value] = {
        "general.architecture": "bert",
        "general.name": name,
        "bert.block_count": shape.num_layers,
        "bert.context_length": shape.max_positions,
        "bert.embedding_length": shape.width,
        "bert.feed_forward_length": shape.inner_width,
        "bert.attention.head_count": shape.num_heads,
        "bert.attention.layer_norm_epsilon": shape.norm_epsilon,
        "bert.attention.causal": False,
        "bert.pooling_type": POOLING_TYPES[pooling],
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": [_spelled(word) for word in words],
        "tokenizer.ggml.token_type": [_kind(word) for word in words],
        "tokenizer.ggml.padding_token_id": words.index("[PAD]"),
        "tokenizer.ggml.unknown_token_id": words.index("[UNK]"),
        "tokenizer.ggml.bos_token_id": words.index("[CLS]"),
        "tokenizer.ggml.cls_token_id": words.index("[CLS]"),
        "tokenizer.ggml.eos_token_id": words.index("[SEP]"),
        "tokenizer.ggml.seperator_token_id": words.index("[SEP]"),
        "tokenizer.ggml.mask_token_id": words.index("[MASK]"),
    }
    if labels:
        facts["bert.classifier.output_labels"] = list(labels)
    return facts


def write_tiny_bert(
    path: Path, *, pooling: str = "mean", labels: tuple[str, ...] = (), seed: int = 1, shape: BertShape = TINY
) -> None:
    """Writes a random BERT over the letters a to z; with `rank` it has a classification head of its labels, or of one
    output without a name.
    """
    words = tiny_words()
    tensors = random_tensors(shape, len(words), np.random.default_rng(seed))
    if pooling == "rank":
        tensors |= _random_head(shape.width, max(1, len(labels)), np.random.default_rng(seed + 1))
    metadata = bert_metadata(shape, words, name=f"tiny bert {pooling}", pooling=pooling, labels=labels)
    write_gguf(path, metadata, tensors)


def tiny_words() -> list[str]:
    """Returns the vocabulary of a tiny model: BERT's special tokens, the letters, and letters that continue a word."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    return [*_SPECIAL, *letters, *(f"##{letter}" for letter in letters)]


def random_tensors(shape: BertShape, vocab_size: int, rng: np.random.Generator) -> dict[str, Tensor]:
    """Returns the tensors of a random model under GGUF's names, all but a classification head."""
    width, inner = shape.width, shape.inner_width

    def noise(*sizes: int) -> Tensor:
        return rng.normal(0.0, 0.3, sizes).astype(np.float32)

    def norm(name: str) -> dict[str, Tensor]:
        return {f"{name}.weight": 1.0 + noise(width), f"{name}.bias": noise(width)}

    def linear(name: str, num_out: int, num_in: int) -> dict[str, Tensor]:
        return {f"{name}.weight": noise(num_out, num_in), f"{name}.bias": noise(num_out)}

    tensors: dict[str, Tensor] = {
        "token_embd.weight": noise(vocab_size, width),
        "position_embd.weight": noise(shape.max_positions, width),
        "token_types.weight": noise(2, width),
        **norm("token_embd_norm"),
    }
    for layer in range(shape.num_layers):
        block = f"blk.{layer}"
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors |= linear(f"{block}.{part}", width, width)
        tensors |= norm(f"{block}.attn_output_norm")
        tensors |= linear(f"{block}.ffn_up", inner, width)
        tensors |= linear(f"{block}.ffn_down", width, inner)
        tensors |= norm(f"{block}.layer_output_norm")
    return tensors


def _random_head(width: int, num_outputs: int, rng: np.random.Generator) -> dict[str, Tensor]:
    return {
        "cls.weight": rng.normal(0.0, 0.3, (width, width)).astype(np.float32),
        "cls.bias": rng.normal(0.0, 0.3, width).astype(np.float32),
        "cls.output.weight": rng.normal(0.0, 0.3, (num_outputs, width)).astype(np.float32),
        "cls.output.bias": rng.normal(0.0, 0.3, num_outputs).astype(np.float32),
    }


def _spelled(word: str) -> str:
    """llama.cpp marks where a word begins, not where it goes on."""
    if word.startswith("[") and word.endswith("]"):
        return word
    return word[2:] if word.startswith("##") else _WORD_START + word


def _kind(word: str) -> int:
    if word == "[UNK]":
        return TOKEN_UNKNOWN
    return TOKEN_CONTROL if word in _SPECIAL else TOKEN_NORMAL
