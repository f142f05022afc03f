"""A vocabulary as llguidance wants it: bytes of tokens, and which of them are no text."""

from collections.abc import Sequence

import llguidance

from tidegate.grammar.matcher import TokenTable


class _ByteTable:
    """What llguidance reads when it builds its prefix tree.

    It also wants to turn text into tokens, for looking ahead, which is not used here: any split would do.
    """

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, table: TokenTable) -> None:
        self.tokens: Sequence[bytes] = [
            b"" if i in table.special_ids else bytes(token) for i, token in enumerate(table.tokens)
        ]
        self.special_token_ids = sorted(table.special_ids | set(table.eos_ids))
        self.eos_token_id = table.eos_ids[0]
        for i in self.special_token_ids:
            self.tokens[i] = table.tokens[i] or f"<|special_{i}|>".encode()
        self._by_bytes = {token: i for i, token in enumerate(self.tokens) if len(token) == 1}

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self._by_bytes[data[i : i + 1]] for i in range(len(data)) if data[i : i + 1] in self._by_bytes]


def make_tokenizer(table: TokenTable) -> llguidance.LLTokenizer:
    """Raises ValueError when the vocabulary cannot carry grammars: no end token, or ids outside of it."""
    size = len(table.tokens)
    if not table.eos_ids or any(not 0 <= i < size for i in (*table.eos_ids, *table.special_ids)):
        raise ValueError("grammars need an end token, and special tokens within the vocabulary")
    return llguidance.LLTokenizer(_ByteTable(table), n_vocab=size, eos_token=list(table.eos_ids))  # type: ignore[arg-type]
