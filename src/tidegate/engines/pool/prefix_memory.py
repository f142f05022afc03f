"""PrefixMemory: which beginnings of prompts one engine has read lately, as far as its cache may still have them.

Remembers hashes (`prefix_hash.py`), the least recently used are forgotten first. It is a guess: the engine's own cache
decides. A wrong guess costs a prefill, nothing else.
"""

from collections import OrderedDict
from collections.abc import Sequence

from tidegate.engines.pool.prefix_hash import BLOCK_TOKENS

MAX_PREFIXES = 65_536
"""Hashes remembered for one engine: about 10 MB."""


class PrefixMemory:
    """`resize` it to the engine's cache; until then it holds as much as any may."""

    def __init__(self, max_prefixes: int = MAX_PREFIXES) -> None:
        self._bound = max_prefixes
        self._max = max_prefixes
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def resize(self, num_cache_tokens: int) -> None:
        """Holds no more than a cache of so many tokens could."""
        self._max = max(1, min(self._bound, num_cache_tokens // BLOCK_TOKENS))
        self._trim()

    def match(self, hashes: Sequence[bytes]) -> int:
        """Returns how many tokens at a prompt's beginning the engine has probably kept."""
        num_blocks = 0
        for known in hashes:
            if known not in self._known:
                break
            num_blocks += 1
        return num_blocks * BLOCK_TOKENS

    def insert(self, hashes: Sequence[bytes]) -> None:
        """The engine reads this prompt now."""
        for key in reversed(hashes):  # the beginning is the last to be forgotten: without it nothing matches
            self._known[key] = None
            self._known.move_to_end(key)
        self._trim()

    def forget(self) -> None:
        """The engine has started anew, or dropped its cache."""
        self._known.clear()

    def _trim(self) -> None:
        while len(self._known) > self._max:
            self._known.popitem(last=False)
