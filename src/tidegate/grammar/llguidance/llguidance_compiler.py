"""llguidance as a backend of the ports in `matcher.py`: from a spec to a grammar of its.

JSON Schema is lowered first (`lowering.py`) to what llguidance keeps exactly; what it says beyond that is refused.
Its limits are those of `llguidance_limits.py`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import llguidance
import numpy as np

from tidegate.grammar.json_text import read_schema
from tidegate.grammar.lark.lark_text import WrittenGrammar
from tidegate.grammar.lark.llguidance_limits import LIMITS
from tidegate.grammar.lark.llguidance_tokenizer import make_tokenizer
from tidegate.grammar.lark.llguidance_words import is_about_size, is_about_support, say
from tidegate.grammar.llguidance.grammar_source import grammar_source, with_header
from tidegate.grammar.llguidance.llguidance_matcher import LlguidanceMatcher
from tidegate.grammar.mask_buffer import MaskWords, check_mask_words
from tidegate.grammar.mask_rows import fill_rows
from tidegate.grammar.matcher import MaskRow, TokenTable
from tidegate.grammar.refusal import GrammarRefusal, Refused, invalid, too_complex, unsupported
from tidegate.grammar.schema.pattern_faults import pattern_path
from tidegate.inference.grammar_spec import (
    GrammarSpec,
    JsonSchemaSpec,
    LarkSpec,
)

GRAMMAR_BYTES = 96 * 1024
BYTES_PER_SOURCE_BYTE = 36
"""What a compiled grammar costs, fitted over jsonschemabench (`bench/grammar_costs.py`)."""

LEAST_VERSION = (1, 9)
"""1.7 takes keys in another spelling, white space without end, and no negative multiples."""

_NO_VALUE = ("unsatisfiable",)


class LlguidanceGrammar:
    """A compiled grammar."""

    def __init__(
        self, base: llguidance.LLMatcher, eos_ids: frozenset[int], source_bytes: int, *, has_no_text: bool
    ) -> None:
        self._base = base
        self._has_no_text = has_no_text
        self._eos_ids = eos_ids
        self._source_bytes = source_bytes

    def make_matcher(self) -> LlguidanceMatcher:
        return LlguidanceMatcher(self._base, self._eos_ids, has_no_text=self._has_no_text)

    @property
    def num_bytes(self) -> int:
        return GRAMMAR_BYTES + BYTES_PER_SOURCE_BYTE * self._source_bytes


class LlguidanceCompiler:
    """Raises ValueError when this vocabulary cannot carry grammars."""

    def __init__(self, table: TokenTable) -> None:
        self._tokenizer = make_tokenizer(table)
        self._vocab_size = len(table.tokens)
        self._eos_ids = frozenset(table.eos_ids)
        self._control_ids = table.special_ids - self._eos_ids
        self._words: MaskWords | None = None

    @property
    def identity(self) -> str:
        return str(llguidance.get_version().split()[0].replace("@", " "))

    def compile(self, spec: GrammarSpec) -> LlguidanceGrammar | GrammarRefusal:
        try:
            written = grammar_source(spec, self._control_ids)
            grammar = with_header(written.text)
            base = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
            if base.is_error():
                raise self._placed(_refusal_of(spec, base.get_error()), written)
            first_ids = self._first_ids(spec, base)
            has_no_text = base.is_accepting() and first_ids <= self._eos_ids
            return LlguidanceGrammar(base, self._eos_ids, len(grammar), has_no_text=has_no_text)
        except Refused as refused:
            return refused.refusal
        except (ValueError, RecursionError):
            return invalid("the grammar cannot be read").refusal

    def _first_ids(self, spec: GrammarSpec, base: llguidance.LLMatcher) -> frozenset[int]:
        """Returns the tokens that a text may begin with. Raises Refused where there is none, or no mask is made."""
        machine = base.deep_copy()
        try:
            bits = np.unpackbits(np.frombuffer(machine.compute_bitmask(), np.uint8), bitorder="little")
        except ValueError as error:
            raise _refusal_of(spec, machine.get_error() or str(error)) from None
        if machine.is_error():
            raise _refusal_of(spec, machine.get_error())
        found = frozenset(np.flatnonzero(bits).tolist())
        if not found:
            raise unsupported("no text that can be written here keeps this grammar")
        return found

    def _placed(self, refused: Refused, written: WrittenGrammar) -> Refused:
        """Names the first schema of a grammar of parts that does not compile by itself, if there is one."""
        for place, expression in written.json:
            alone = with_header(f"start: {expression}")
            error = llguidance.LLMatcher(self._tokenizer, alone, log_level=0, limits=LIMITS).get_error()
            if error:
                schema = json.loads(expression.removeprefix("%json "))
                found = _refusal_of(JsonSchemaSpec(json.dumps(schema).encode()), error).refusal
                return Refused(replace(found, path=f"{place}{found.path or ''}" or None))
        return refused

    def register(self, words: MaskWords) -> None:
        check_mask_words(words, self._vocab_size)
        self._words = words

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        return fill_rows(rows, self._words, LlguidanceMatcher)


def make_compiler(table: TokenTable) -> LlguidanceCompiler:
    require_version(llguidance.get_version())
    return LlguidanceCompiler(table)


def require_version(told: str) -> None:
    """Raises ValueError for a library older than what is lowered for it. `told` is as in `llguidance@1.9.1 (...)`."""
    found = re.search(r"\d+(?:\.\d+)+", told)
    if found is None or tuple(map(int, found[0].split(".")[:2])) < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise ValueError(
            f"llguidance {found[0] if found else told[:40]} enforces less than is promised; {least} is needed: "
            f"pip install 'llguidance>={least}'"
        )


def _refusal_of(spec: GrammarSpec, error: str) -> Refused:
    """Turns what llguidance says into a refusal of ours."""
    hidden_lines = None
    if isinstance(spec, LarkSpec):
        hidden_lines = 0 if "%llguidance" in spec.grammar else 1
    line = say(error, hidden_lines=hidden_lines)
    if is_about_size(error):
        return too_complex(f"the grammar is too complex: {line}")
    if any(word in error.lower() for word in _NO_VALUE):
        return invalid("no value satisfies this schema")
    if isinstance(spec, JsonSchemaSpec):
        return unsupported(f"cannot be enforced exactly: {line}", pattern_path(read_schema(spec.schema)))
    if is_about_support(error):
        return unsupported(f"cannot be enforced: {line}")
    return invalid(f"cannot be compiled: {line}")
