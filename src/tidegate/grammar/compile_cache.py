"""Compiled grammars that are kept, and what is being compiled: for whoever owns a pool of compiling threads.

Decides, of one grammar that is wanted, whether it is there, on its way, or to be compiled now, and which ones are
forgotten when they would be too many. A refusal is kept like a grammar: the same schema is not read twice to be refused
twice. Does not know threads, time, or who waits. Used by one thread.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from tidegate.grammar.matcher import CompiledGrammar
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import GrammarSpec

REFUSAL_BYTES = 1024
"""What a kept refusal is taken to cost."""


class CompileKey(NamedTuple):
    """Under which a compiled grammar is kept. `source` is a digest of the spec's whole text."""

    backend: str
    vocabulary: str
    kind: str
    source: bytes


def compile_key(backend: str, vocabulary: str, spec: GrammarSpec) -> CompileKey:
    """`backend` is `GrammarCompiler.identity`; `vocabulary` names the tokenizer, best by a digest."""
    kind = str(type(spec).__struct_config__.tag)
    return CompileKey(backend, vocabulary, kind, hashlib.sha256(msgspec.msgpack.encode(spec)).digest())


CompileOutcome = CompiledGrammar | GrammarRefusal


class Weighed(Protocol):
    """What may be kept of a grammar that compiled: the grammar itself, or the fact."""

    @property
    def num_bytes(self) -> int:
        """About how much memory keeping this costs."""
        ...


Kept = TypeVar("Kept", bound=Weighed)


class Lookup(Enum):
    """What to do about a grammar that is wanted."""

    HIT = "hit"
    """It is there: `outcome_of` has it."""
    PENDING = "pending"
    """It is being compiled for somebody else; wait for the same `finish`."""
    MISS = "miss"
    """Compile it now, and call `finish` once, or `drop` when nobody will."""


@dataclass(frozen=True, slots=True)
class CompileRecord:
    """One kept outcome: what it cost in seconds, what it costs in bytes, and how often it was found again."""

    key: CompileKey
    compile_s: float
    num_bytes: int
    num_hits: int
    is_refused: bool


@dataclass(frozen=True, slots=True)
class CompileStatistics:
    """Counts since the beginning; `num_entries`, `num_bytes` and `num_pending` are of now.

    `num_joined` wanted what was already being compiled. `num_compiled` ended, `num_refused` of them with a refusal.
    """

    num_hits: int = 0
    num_joined: int = 0
    num_misses: int = 0
    num_compiled: int = 0
    num_refused: int = 0
    num_timeouts: int = 0
    num_evicted: int = 0
    compile_s: float = 0.0
    longest_compile_s: float = 0.0
    num_entries: int = 0
    num_bytes: int = 0
    num_pending: int = 0


@dataclass(slots=True)
class _Entry(Generic[Kept]):
    outcome: Kept | GrammarRefusal
    compile_s: float
    num_bytes: int
    num_hits: int = 0


class CompileCache(Generic[Kept]):
    """Keeps the outcomes used last, at most `max_entries` of them and `max_bytes` in all by their own account."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        """Raises ValueError for bounds below 1."""
        if min(max_entries, max_bytes) < 1:
            raise ValueError(f"a cache of compiled grammars needs room: {max_entries} entries, {max_bytes} bytes")
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[CompileKey, _Entry[Kept]] = OrderedDict()
        self._pending: set[CompileKey] = set()
        self._num_bytes = 0
        self._counts = CompileStatistics()

    def look_up(self, key: CompileKey) -> Lookup:
        """Says what to do, and takes note that it was asked. After MISS the key is pending."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.num_hits += 1
            self._entries.move_to_end(key)
            self._counts = replace(self._counts, num_hits=self._counts.num_hits + 1)
            return Lookup.HIT
        if key in self._pending:
            self._counts = replace(self._counts, num_joined=self._counts.num_joined + 1)
            return Lookup.PENDING
        self._pending.add(key)
        self._counts = replace(self._counts, num_misses=self._counts.num_misses + 1)
        return Lookup.MISS

    def outcome_of(self, key: CompileKey) -> Kept | GrammarRefusal | None:
        """Returns what is kept, or None. Counts nothing."""
        entry = self._entries.get(key)
        return None if entry is None else entry.outcome

    def finish(self, key: CompileKey, outcome: Kept | GrammarRefusal, compile_s: float) -> None:
        """Takes the end of a compilation that took `compile_s` seconds; may forget others for it, or it at once."""
        self._pending.discard(key)
        counts = self._counts
        is_refused = isinstance(outcome, GrammarRefusal)
        self._counts = replace(
            counts,
            num_compiled=counts.num_compiled + 1,
            num_refused=counts.num_refused + is_refused,
            compile_s=counts.compile_s + compile_s,
            longest_compile_s=max(counts.longest_compile_s, compile_s),
        )
        num_bytes = REFUSAL_BYTES if isinstance(outcome, GrammarRefusal) else outcome.num_bytes
        self._forget(key)
        if num_bytes <= self._max_bytes:
            self._entries[key] = _Entry(outcome, compile_s, num_bytes)
            self._num_bytes += num_bytes
            self._make_room()

    def note_timeout(self) -> None:
        """Counts somebody who stopped waiting. The compilation may still end, and is kept then."""
        self._counts = replace(self._counts, num_timeouts=self._counts.num_timeouts + 1)

    def drop(self, key: CompileKey) -> None:
        """Nobody compiles this any more: the next one who wants it will."""
        self._pending.discard(key)

    def statistics(self) -> CompileStatistics:
        return replace(
            self._counts,
            num_entries=len(self._entries),
            num_bytes=self._num_bytes,
            num_pending=len(self._pending),
        )

    def records(self) -> Iterator[CompileRecord]:
        """Yields what is kept, least recently used first."""
        for key, entry in self._entries.items():
            is_refused = isinstance(entry.outcome, GrammarRefusal)
            yield CompileRecord(key, entry.compile_s, entry.num_bytes, entry.num_hits, is_refused)

    def _make_room(self) -> None:
        while len(self._entries) > self._max_entries or self._num_bytes > self._max_bytes:
            self._forget(next(iter(self._entries)))
            self._counts = replace(self._counts, num_evicted=self._counts.num_evicted + 1)

    def _forget(self, key: CompileKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._num_bytes -= entry.num_bytes
