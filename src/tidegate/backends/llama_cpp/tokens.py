"""The bytes of a model's tokens, through llama.cpp's own vocabulary: what grammars are matched against.

The server reads the same file for its tokenizer (`text/gguf_tokenizer.py`); a test holds the two readings together.
"""

import ctypes
from typing import Any

from tidegate.grammar.matcher import TokenTable

# enum llama_token_attr of llama.h
_UNKNOWN, _CONTROL = 1 << 0, 1 << 3


def read_token_table(api: Any, vocab: Any) -> TokenTable:  # noqa: ANN401 - untyped bindings
    """Returns all tokens; control and end tokens are special, the model's main end token comes first."""
    num_tokens = api.llama_vocab_n_tokens(vocab)
    token_ids = range(num_tokens)
    ends = [i for i in token_ids if api.llama_vocab_is_eog(vocab, i)]
    main = api.llama_vocab_eos(vocab)
    special = {i for i in token_ids if api.llama_vocab_get_attr(vocab, i) & (_CONTROL | _UNKNOWN)}
    return TokenTable(
        tokens=_read_pieces(api, vocab, num_tokens),
        special_ids=frozenset(special | set(ends)),
        eos_ids=tuple(sorted(ends, key=lambda i: (i != main, i))),
    )


def _read_pieces(api: Any, vocab: Any, num_tokens: int) -> list[bytes]:  # noqa: ANN401 - untyped bindings
    buffer = ctypes.create_string_buffer(1 << 10)
    pieces: list[bytes] = []
    for token_id in range(num_tokens):
        length = api.llama_token_to_piece(vocab, token_id, buffer, len(buffer), 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = api.llama_token_to_piece(vocab, token_id, buffer, len(buffer), 0, True)
        pieces.append(buffer.raw[:length])
    return pieces
