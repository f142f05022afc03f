"""What every grammar backend must do, whatever it compiles with.

The checks run on a small vocabulary, so that what a mask says can be compared with what the machine accepts, token by
token. `make_compiler` is what the backend registers.
"""

import random
from collections.abc import Callable, Sequence

import numpy as np

from tidegate.grammar.mask_buffer import MaskWords, allowed_ids, make_mask_words
from tidegate.grammar.matcher import CompiledGrammar, GrammarCompiler, GrammarMatcher, MaskRow, TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)

SMALL_VOCABULARY = TokenTable(
    [bytes([i]) for i in range(256)]
    + [b'{"', b'":', b'"}', b'", "', b"ab", b"aba", b"true", b"12", b"", "é".encode()[:1], "日".encode(), b"<tool>"]
    + [b"<|end|>", b"<|stop|>", b"<|control|>"],
    frozenset({268, 269, 270}),
    (268, 269),
)
"""Bytes, some tokens of several bytes, one without text, a part of a character, two end tokens, a control token."""

_UNTOUCHED = np.uint32(0xA5A5A5A5)
_SCHEMA = b'{"type":"object","properties":{"ab":{"enum":["ab","aba",12]},"c":{"type":"boolean"}},"required":["ab"]}'

SPECS: tuple[GrammarSpec, ...] = (
    JsonSchemaSpec(_SCHEMA),
    JsonObjectSpec(),
    RegexSpec("(ab|aba)+c?"),
    ChoiceSpec(("ab", "aba", "日本")),
    LarkSpec('start: "ab" rest*\nrest: "12" | "{" rest "}"'),
    StructuralTagSpec((StructuralTag("<tool>", b'{"type":"boolean"}', "ab"),), ("<tool>",)),
)
BROKEN: tuple[GrammarSpec, ...] = (
    JsonSchemaSpec(b"{"),
    JsonSchemaSpec(b'{"type":"nothing"}'),
    JsonSchemaSpec(b'{"$dynamicRef":"#x"}'),
    JsonSchemaSpec(b"[" * 10_000),
    RegexSpec("("),
    ChoiceSpec(()),
    LarkSpec("start: nowhere"),
    StructuralTagSpec((), ()),
)


def check_matcher(make_compiler: Callable[[TokenTable], GrammarCompiler]) -> None:
    """Raises AssertionError where a backend breaks a rule of `grammar/matcher.py`."""
    compiler = make_compiler(SMALL_VOCABULARY)
    _check_registration(compiler)
    words = make_mask_words(4, 3, len(SMALL_VOCABULARY.tokens))
    compiler.register(words)
    for spec in BROKEN:
        _require(isinstance(compiler.compile(spec), GrammarRefusal), f"{spec} is refused, and nothing raises")
    for number, spec in enumerate(SPECS):
        grammar = compiler.compile(spec)
        if isinstance(grammar, GrammarRefusal):
            raise AssertionError(f"{spec} is refused: {grammar.message}")
        for seed in range(4):
            _walk(compiler, words, grammar, random.Random(100 * number + seed))
        _check_sticky_error(compiler, words, grammar)
    _check_batch(compiler, words)
    empty = compiler.compile(RegexSpec(""))
    _require(not isinstance(empty, GrammarRefusal), "the empty text is a text")
    if not isinstance(empty, GrammarRefusal):
        _require(empty.make_matcher().is_terminated, "where only the empty text is allowed, the machine is terminated")


def _check_registration(compiler: GrammarCompiler) -> None:
    right = make_mask_words(2, 0, len(SMALL_VOCABULARY.tokens))
    wrong: list[object] = [right.astype(np.int64), right[:, :-1].copy(), right[0], right[:, ::2], right.view(np.int32)]
    for words in wrong:
        try:
            compiler.register(words)  # type: ignore[arg-type]
        except ValueError:
            continue
        raise AssertionError("a mask buffer of a wrong shape or type is refused")


def mask_of(compiler: GrammarCompiler, words: MaskWords, matcher: GrammarMatcher) -> list[int]:
    compiler.fill([MaskRow(matcher, 1)])
    return allowed_ids(words[1], len(SMALL_VOCABULARY.tokens))


def _walk(compiler: GrammarCompiler, words: MaskWords, grammar: CompiledGrammar, draw: random.Random) -> None:
    matcher = grammar.make_matcher()
    masks: list[list[int]] = []
    taken: list[int] = []
    for _ in range(24):
        masks.append(mask_of(compiler, words, matcher))
        _check_mask(matcher, masks[-1])
        if not masks[-1]:
            break
        ends = [i for i in masks[-1] if i in SMALL_VOCABULARY.eos_ids]
        taken.append(draw.choice(ends if ends and draw.random() < 0.3 else masks[-1]))
        _require(matcher.accept(taken[-1:]), f"token {taken[-1]} of the mask is accepted")
    if taken and taken[-1] in SMALL_VOCABULARY.eos_ids:
        _require(matcher.is_terminated, "an end token terminates")
        _require(mask_of(compiler, words, matcher) == [], "nothing follows an end token")
    _check_rollback(compiler, words, matcher, taken, masks)
    _require(matcher.error is None, "a walk along the masks is no error")


def _check_mask(matcher: GrammarMatcher, mask: list[int]) -> None:
    tokens = range(len(SMALL_VOCABULARY.tokens))
    legal = [i for i in tokens if SMALL_VOCABULARY.tokens[i] and matcher.legal_prefix([i]) == 1]
    _require(mask == legal, f"the mask is what the machine accepts: {set(mask) ^ set(legal)}")
    ends = set(SMALL_VOCABULARY.eos_ids)
    _require(not set(mask) & (SMALL_VOCABULARY.special_ids - ends), "no control token is text")
    if matcher.is_terminated:
        _require(set(mask) in (ends, set()), "a terminated machine lets only end tokens follow")
    elif mask:
        _require(not ends >= set(mask), "where only an end can follow, the machine is terminated")


def _check_rollback(
    compiler: GrammarCompiler, words: MaskWords, matcher: GrammarMatcher, taken: list[int], masks: list[list[int]]
) -> None:
    for num_tokens in range(1, min(4, len(taken)) + 1):
        matcher.rollback(num_tokens)
        _require(mask_of(compiler, words, matcher) == masks[len(taken) - num_tokens], "rollback restores the mask")
        _require(matcher.legal_prefix(taken[len(taken) - num_tokens :]) == num_tokens, "what was taken back is legal")
        _require(matcher.accept(taken[len(taken) - num_tokens :]), "what was taken back is accepted again")
    matcher.rollback(len(taken))
    _require(mask_of(compiler, words, matcher) == masks[0], "rollback to the beginning is the beginning")


def _check_sticky_error(compiler: GrammarCompiler, words: MaskWords, grammar: CompiledGrammar) -> None:
    control = max(SMALL_VOCABULARY.special_ids)
    for bad in ([control], [len(SMALL_VOCABULARY.tokens) + 5]):
        matcher = grammar.make_matcher()
        _require(matcher.legal_prefix(bad) == 0, "an illegal token is not legal")
        _require(matcher.error is None, "asking is no error")
        _require(not matcher.accept(bad) and matcher.error is not None, "an illegal token is an error")
        matcher.rollback(1)
        _require(matcher.error is not None and not matcher.is_terminated, "an error stays")
        _require(not matcher.accept([]) and matcher.legal_prefix([97]) == 0, "nothing is accepted after an error")
        _require(mask_of(compiler, words, matcher) == [], "the mask of a failed machine is empty")
    matcher = grammar.make_matcher()
    matcher.rollback(3)
    _require(matcher.error is not None, "taking back more than was accepted is an error")


def _check_batch(compiler: GrammarCompiler, words: MaskWords) -> None:
    grammar = compiler.compile(RegexSpec("abc"))
    if isinstance(grammar, GrammarRefusal):
        raise AssertionError(grammar.message)
    one, other = grammar.make_matcher(), grammar.make_matcher()
    other.accept(list(b"ab"))
    words[:] = _UNTOUCHED
    end = SMALL_VOCABULARY.eos_ids[0]
    legal = compiler.fill([MaskRow(one, 2, [*b"abx"]), MaskRow(other, 9, [*b"c", end])])
    _require(legal == [2, 2], f"the legal tokens of drafts are counted: {legal}")
    touched = [row for row in range(len(words)) if (words[row] != _UNTOUCHED).any()]
    _require(touched == [2, 3, 4, 9, 10, 11], f"rows that are not listed stay: {touched}")
    rows = {row: allowed_ids(words[row], len(SMALL_VOCABULARY.tokens)) for row in touched}
    _require(rows[4] == rows[9] == [ord("c")] and rows[11] == [], "a row behind a draft is that of its state")
    _require(one.legal_prefix(list(b"abc")) == 3 and other.legal_prefix([ord("c")]) == 1, "drafts leave no trace")
    bad_rows: Sequence[Sequence[MaskRow]] = ([MaskRow(one, len(words))], [MaskRow(one, 2, [97]), MaskRow(other, 3)])
    for bad in bad_rows:
        words[:] = _UNTOUCHED
        try:
            compiler.fill(bad)
        except ValueError:
            _require(bool((words == _UNTOUCHED).all()), "nothing is written when rows are wrong")
            continue
        raise AssertionError("rows outside the buffer, or wanted twice, are refused")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(f"broken: {rule}")
