"""Turns the plan's moves into llama.cpp's operations on sequences.

In the unified layout all sequences lie in one pool of cells, and sharing marks cells with a second id. In the
per-sequence layout each has a buffer of its own, and only whole buffers can be copied: a share is a copy, made by
llama.cpp at the next decode, cut down to the shared length at once.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from tidegate.core.backend import BackendError
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate
from tidegate.sizing.llama_cpp_options import KvLayout


class SequenceMemory(Protocol):
    """The two operations we need, with llama.cpp's meaning: positions [p0, p1), a negative one is open."""

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None: ...

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool: ...


class LlamaMemory:
    """`SequenceMemory` of a llama.cpp context."""

    def __init__(self, seq_cp: Callable[..., None], seq_rm: Callable[..., bool], handle: object) -> None:
        self._seq_cp = seq_cp
        self._seq_rm = seq_rm
        self._handle = handle

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        self._seq_cp(self._handle, src, dst, p0, p1)

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        return self._seq_rm(self._handle, seq_id, p0, p1)


def apply_moves(memory: SequenceMemory, moves: Iterable[KvMove], layout: KvLayout) -> None:
    """Carries out moves in order. Raises BackendError when the model's cache cannot do one."""
    for move in moves:
        match move:
            case KvShare(src, dst, length):
                _share(memory, src, dst, length, layout)
            case KvTruncate(seq_id, length):
                _remove(memory, seq_id, length)
            case KvDrop(seq_id):
                _remove(memory, seq_id, 0)


def cut_fillers(memory: SequenceMemory, fillers: Iterable[tuple[int, int]]) -> None:
    """Takes the tokens at these ids and positions, and any behind them, out of the cache again."""
    for seq_id, position in fillers:
        _remove(memory, seq_id, position)


def _share(memory: SequenceMemory, src: int, dst: int, length: int, layout: KvLayout) -> None:
    if length == 0:
        return
    if layout == "unified":
        memory.seq_cp(src, dst, 0, length)
        return
    memory.seq_cp(src, dst, -1, -1)
    _remove(memory, dst, length)


def _remove(memory: SequenceMemory, seq_id: int, start: int) -> None:
    # A whole sequence is named by open ends: cutting from 0 counts as partial for some kinds of cache.
    if not memory.seq_rm(seq_id, start if start > 0 else -1, -1):
        raise BackendError(f"this model's cache cannot be cut: sequence {seq_id} to {start} tokens")
