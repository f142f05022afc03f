"""xgrammar as a backend of the ports in `matcher.py`: from a spec to a grammar of its.

Its engine for grammars is used, and not its reading of JSON Schema and of regular expressions: that takes several
keywords without a word and keeps others loosely (`\\u` escapes in names, raw line breaks in strings that a pattern
bounds). Both are written out here in its EBNF, `schema_ebnf.py` and `regex_ebnf.py`, or refused.

Masks of states are made when a state is first reached: to make all of them beforehand takes about 6 ms for each class
of characters with 49,152 tokens, seconds for one schema, and most states are never reached.
"""

import importlib.metadata
from collections.abc import Sequence

import numpy as np
import xgrammar

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES, read_schema
from tidegate.grammar.mask_buffer import MaskWords, check_mask_words, make_mask_words, words_per_row
from tidegate.grammar.mask_rows import fill_rows
from tidegate.grammar.matcher import MaskRow, TokenTable
from tidegate.grammar.patterns.char_set import literal
from tidegate.grammar.patterns.regex_ebnf import regex_ebnf
from tidegate.grammar.refusal import GrammarRefusal, Refused, invalid, too_complex, unsupported
from tidegate.grammar.schema.keyword_path import keyword_path
from tidegate.grammar.schema.lowering import lower_schema
from tidegate.grammar.tag_grammar import check_tags, trigger_of
from tidegate.grammar.xgrammar.schema_ebnf import SchemaEbnf, require_small
from tidegate.grammar.xgrammar.xgrammar_matcher import TokenRules, XgrammarMatcher
from tidegate.inference.grammar_parts import CompositeSpec
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTagSpec,
)

MASK_BYTES_PER_TOKEN = 110
CLASS_BYTES_PER_TOKEN = 0.4
"""What a grammar grows by while its masks are made, for each token of the vocabulary: once, and for each class of
characters in its EBNF. Fitted over jsonschemabench.
"""


class XgrammarGrammar:
    """A compiled grammar. `num_bytes` counts the masks that are still to be made."""

    def __init__(self, compiled: xgrammar.CompiledGrammar, rules: TokenRules, num_classes: int) -> None:
        self._compiled = compiled
        self._rules = rules
        per_token = MASK_BYTES_PER_TOKEN + CLASS_BYTES_PER_TOKEN * num_classes
        self._num_bytes = int(compiled.memory_size_bytes + per_token * rules.vocab_size)

    def make_matcher(self) -> XgrammarMatcher:
        return XgrammarMatcher(self._compiled, self._rules)

    @property
    def num_bytes(self) -> int:
        return self._num_bytes


class XgrammarCompiler:
    """Raises ValueError when this vocabulary cannot carry grammars."""

    def __init__(self, table: TokenTable) -> None:
        size = len(table.tokens)
        if not table.eos_ids or any(not 0 <= i < size for i in (*table.eos_ids, *table.special_ids)):
            raise ValueError("grammars need an end token, and special tokens within the vocabulary")
        ends = frozenset(table.eos_ids)
        without_text = [b"" if i in table.special_ids else bytes(token) for i, token in enumerate(table.tokens)]
        info = xgrammar.TokenizerInfo(without_text, vocab_size=size, stop_token_ids=list(table.eos_ids))
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True
        )
        never = frozenset(i for i, token in enumerate(without_text) if not token) - ends
        eos_words = np.zeros(words_per_row(size), dtype=np.uint32)
        for end in ends:
            eos_words[end >> 5] |= np.uint32(1 << (end & 31))
        self._rules = TokenRules(size, ends, never, eos_words, make_mask_words(1, 0, size))
        self._words: MaskWords | None = None

    @property
    def identity(self) -> str:
        return f"xgrammar {importlib.metadata.version('xgrammar')}"

    def compile(self, spec: GrammarSpec) -> XgrammarGrammar | GrammarRefusal:
        try:
            text = require_small(_ebnf(spec))
            compiled = self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(text))
            return XgrammarGrammar(compiled, self._rules, text.count("["))
        except Refused as refused:
            return refused.refusal
        except (ValueError, RecursionError, RuntimeError):
            return invalid("the grammar cannot be compiled").refusal

    def register(self, words: MaskWords) -> None:
        check_mask_words(words, self._rules.vocab_size)
        self._words = words

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        return fill_rows(rows, self._words, XgrammarMatcher)


def make_compiler(table: TokenTable) -> XgrammarCompiler:
    return XgrammarCompiler(table)


def _ebnf(spec: GrammarSpec) -> str:
    """Returns the spec in xgrammar's EBNF. Raises Refused."""
    match spec:
        case JsonSchemaSpec(schema):
            writer = SchemaEbnf()
            return writer.text(_written(writer, schema))
        case JsonObjectSpec():
            return SchemaEbnf().text("object")
        case RegexSpec(pattern):
            _check_size(pattern)
            found = regex_ebnf(pattern)
            if found is None:
                raise invalid("no text matches this regular expression")
            return f"root ::= {found}\n"
        case ChoiceSpec(choices):
            if not choices:
                raise invalid("a choice needs at least one text")
            _check_size("".join(choices))
            _check_text("".join(choices))
            return "root ::= " + " | ".join(literal(choice) for choice in choices)
        case LarkSpec():
            raise unsupported("Lark grammars are not read by xgrammar; set grammar.backend to llguidance")
        case StructuralTagSpec():
            return _tags(spec)
        case CompositeSpec():
            raise unsupported("composed grammars (forced tool calls) are not written for xgrammar")


def _written(writer: SchemaEbnf, schema: bytes) -> str:
    source = read_schema(schema)
    lowered = lower_schema(source)
    try:
        return writer.value(lowered)
    except Refused as refused:
        found = refused.refusal
        if found.path is not None:
            raise
        path = keyword_path(source, found.message)
        raise Refused(GrammarRefusal(found.kind, found.message, path, found.limit)) from None


def _tags(spec: StructuralTagSpec) -> str:
    check_tags(spec)
    writer = SchemaEbnf()
    dispatched = []
    rules = []
    for i, trigger in enumerate(spec.triggers):
        options = []
        for tag in spec.tags:
            if trigger_of(tag, spec.triggers) == trigger:
                _check_text(tag.begin + tag.end)
                value = _written(writer, tag.schema)
                options.append(f"{literal(tag.begin[len(trigger) :])} {value} {literal(tag.end)}")
        dispatched.append(f"({literal(trigger)}, tag{i})")
        rules.append(f"tag{i} ::= {' | '.join(options)}")
    return writer.text(f"TagDispatch({', '.join(dispatched)})") + "\n".join(rules)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid("a choice or tag is not text") from error


def _check_size(text: str) -> None:
    if len(text) > MAX_SCHEMA_BYTES:
        raise too_complex("the grammar is too large", LimitFact("schema_bytes", MAX_SCHEMA_BYTES, len(text)))
