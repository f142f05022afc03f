"""The one buffer into which all masks are written: a row for each place where a token will be chosen.

Rows are sequences times (1 + draft tokens). A row holds one bit for each token id, 32 to a word, lowest bit first: bit
1 means that the token may come next. Whatever registers the buffer (a sampler, a device) and whatever fills it must
agree on its shape, and `check_mask_words` says so loudly when they do not: a mask of the wrong width or type would
otherwise mask other tokens than those it means.
"""

import numpy as np
from numpy.typing import NDArray

MaskWords = NDArray[np.uint32]

ALL_ALLOWED = np.uint32(0xFFFFFFFF)


def words_per_row(vocab_size: int) -> int:
    return (vocab_size + 31) // 32


def make_mask_words(num_sequences: int, max_draft_tokens: int, vocab_size: int) -> MaskWords:
    """Returns the buffer, with every token allowed in every row."""
    rows = num_sequences * (1 + max_draft_tokens)
    return np.full((rows, words_per_row(vocab_size)), ALL_ALLOWED, dtype=np.uint32)


def check_mask_words(words: MaskWords, vocab_size: int) -> None:
    """Raises ValueError unless these are contiguous, writable rows of packed 32-bit words for this vocabulary."""
    if words.dtype != np.uint32:
        raise ValueError(f"a mask buffer holds 32-bit unsigned words, not {words.dtype}")
    width = words_per_row(vocab_size)
    if words.ndim != 2 or words.shape[1] != width:
        raise ValueError(f"a mask buffer for {vocab_size} tokens has rows of {width} words; its shape is {words.shape}")
    if not words.flags.c_contiguous or not words.flags.writeable:
        raise ValueError("a mask buffer is contiguous and writable")


def allowed_ids(row: MaskWords, vocab_size: int) -> list[int]:
    """Returns the token ids that one row allows, ascending."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[:vocab_size]
    return np.flatnonzero(bits).tolist()
