"""Whether a machine and a JSON Schema agree: instances in, texts out.

`accepts` writes an instance as the documented rule says (short escapes, integers without fraction) and in any order of
members, because the machine has one order and instances come in another. `random_text` is a text that the machine
allows, drawn byte by byte.
"""

import json
import math
import random
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from tidegate.grammar.json_text import write_json
from tidegate.grammar.mask_buffer import MaskWords, allowed_ids, make_mask_words
from tidegate.grammar.matcher import CompiledGrammar, GrammarCompiler, GrammarMatcher, MaskRow, TokenTable
from tidegate.grammar.registry import DEFAULT_BACKEND, find_backend

EOS = 256
BYTES = TokenTable([bytes([i]) for i in range(256)] + [b"<eos>"], frozenset({EOS}), (EOS,))
"""One token for each byte: masks say exactly which byte may follow."""

_PERMUTED = 4
_MAX_PUSHES = 4000
_ENDINGS = frozenset(b'"}],')


def byte_compiler(backend: str = DEFAULT_BACKEND) -> tuple[GrammarCompiler, MaskWords]:
    make = find_backend(backend)
    assert make is not None
    compiler = make(BYTES)
    words = make_mask_words(1, 0, len(BYTES.tokens))
    compiler.register(words)
    return compiler, words


class _Writer:
    """Tries to write a value into a machine in several orders of its members; what failed is taken back."""

    def __init__(self, machine: GrammarMatcher, orders: list[list[str]]) -> None:
        self._machine = machine
        self._orders = orders
        self._num_pushes = 0
        self.written: list[bytes] = []

    def ways(self, value: Any) -> Iterator[None]:
        if isinstance(value, dict):
            for order in _member_orders(value, self._orders):
                yield from self._in(b"{", lambda order=order: self._members(order, b""))  # type: ignore[misc]
        elif isinstance(value, list):
            yield from self._in(b"[", lambda: self._items(value, b""))
        else:
            for text in _spellings(value):
                yield from self._in(text, _once)

    def _members(self, left: list[tuple[str, Any]], separator: bytes) -> Iterator[None]:
        if not left:
            yield from self._in(b"}", _once)
            return
        key, value = left[0]
        head = separator + write_json(key).encode() + b":"
        for _ in self._in(head, lambda: self.ways(value)):
            yield from self._members(left[1:], b",")

    def _items(self, left: list[Any], separator: bytes) -> Iterator[None]:
        if not left:
            yield from self._in(b"]", _once)
            return
        for _ in self._in(separator, lambda: self.ways(left[0])):
            yield from self._items(left[1:], b",")

    def _in(self, text: bytes, inner: Callable[[], Iterator[None]]) -> Iterator[None]:
        self._num_pushes += 1
        if self._num_pushes > _MAX_PUSHES or self._machine.legal_prefix(list(text)) < len(text):
            return
        self._machine.accept(list(text))
        self.written.append(text)
        yield from inner()
        self.written.pop()
        self._machine.rollback(len(text))


def _once() -> Iterator[None]:
    yield


def _spellings(value: Any) -> list[bytes]:
    texts = [write_json(value)]
    if isinstance(value, float) and value.is_integer():
        texts = [str(int(value)), *texts]
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:
        return []


def accepts(grammar: CompiledGrammar, value: Any, schema: Any = None) -> bool:
    return spelling(grammar, value, schema) is not None


def spelling(grammar: CompiledGrammar, value: Any, schema: Any = None) -> bytes | None:
    """Returns the text in which a machine of bytes accepts a value, or None."""
    machine = grammar.make_matcher()
    writer = _Writer(machine, _listed_orders(schema))
    return next((b"".join(writer.written) for _ in writer.ways(value) if machine.legal_prefix([EOS]) == 1), None)


def _listed_orders(schema: Any) -> list[list[str]]:
    """Returns every list of property names that a schema holds, required ones behind."""
    found: list[list[str]] = []
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names = node.get("properties")
            required = node.get("required")
            found.append(
                [*(names if isinstance(names, dict) else ()), *(required if isinstance(required, list) else ())]
            )
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return [order for order in found if order]


def _member_orders(value: dict[str, Any], orders: list[list[str]]) -> list[list[tuple[str, Any]]]:
    if len(value) <= _PERMUTED:
        return [list(order) for order in permutations(value.items())]
    best = sorted(orders, key=lambda order: -len(value.keys() & set(order)))[:3]
    ranks = [{name: i for i, name in reversed(list(enumerate(order)))} for order in best]
    return [sorted(value.items(), key=lambda member: rank.get(member[0], 10**6)) for rank in ranks] + [
        list(value.items())
    ]


def accepts_text(grammar: CompiledGrammar, text: str) -> bool:
    return grammar.make_matcher().legal_prefix([*text.encode(), EOS]) == len(text.encode()) + 1


def random_text(compiler: GrammarCompiler, words: MaskWords, grammar: CompiledGrammar, seed: int) -> str | None:
    """Returns a complete text, or None when none was found within 600 bytes."""
    draw = random.Random(seed)
    machine = grammar.make_matcher()
    written = bytearray()
    while len(written) < 600:
        compiler.fill([MaskRow(machine, 0)])
        ids = allowed_ids(words[0], len(BYTES.tokens))
        if not ids:
            return None
        if EOS in ids and (len(ids) == 1 or draw.random() < 0.5):
            return written.decode("utf-8")
        ids = [i for i in ids if i != EOS]
        ends = [i for i in ids if i in _ENDINGS]
        plain = [i for i in ids if 32 < i < 127] or ids
        chosen = draw.choice(ends if ends and draw.random() < 0.4 else plain if draw.random() < 0.9 else ids)
        written.append(chosen)
        if not machine.accept([chosen]):
            raise AssertionError(f"the mask allowed byte {chosen}, the machine does not: {machine.error}")
    return None


def finite_value(text: str) -> Any:
    """Returns what a text says, or None when a number of it is too large for a double, as validators read them."""
    found = json.loads(text)
    waiting = [found]
    while waiting:
        node = waiting.pop()
        if isinstance(node, float) and math.isinf(node):
            return None
        if isinstance(node, dict | list):
            waiting += node.values() if isinstance(node, dict) else node
    return found
