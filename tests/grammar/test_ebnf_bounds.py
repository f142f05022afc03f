"""Bounds of what is written for the second backend; none of them needs it to be installed."""

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.grammar.patterns.regex_tree import MAX_REGEX_DEPTH, parse_regex
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind, Refused
from tidegate.grammar.xgrammar.schema_cases import MAX_CASES, flat_cases
from tidegate.grammar.xgrammar.schema_ebnf import MAX_COUNTED, MAX_EBNF_BYTES, SchemaEbnf, require_small


def refusal_of(work: Callable[[], Any]) -> GrammarRefusal:
    with pytest.raises(Refused) as caught:
        work()
    return caught.value.refusal


def limit_of(refusal: GrammarRefusal) -> tuple[str, int]:
    assert refusal.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
    assert refusal.limit is not None
    return refusal.limit.name, refusal.limit.value


@pytest.mark.parametrize("keyword", ["minItems", "maxItems", "minLength", "maxLength", "maxProperties"])
def test_counts_beyond_the_bound_are_refused(keyword: str) -> None:
    kind = {"Items": "array", "Length": "string", "Properties": "object"}[keyword[3:]]
    assert SchemaEbnf().value({"type": kind, keyword: MAX_COUNTED})
    refusal = refusal_of(lambda: SchemaEbnf().value({"type": kind, keyword: MAX_COUNTED + 1}))
    assert limit_of(refusal) == ("schema_count", MAX_COUNTED)


def test_a_grammar_that_is_too_large_is_refused() -> None:
    assert require_small("x" * MAX_EBNF_BYTES)
    refusal = refusal_of(lambda: require_small("x" * (MAX_EBNF_BYTES + 1)))
    assert limit_of(refusal) == ("grammar_bytes", MAX_EBNF_BYTES)


def test_cases_that_multiply_beyond_the_bound_are_refused() -> None:
    num_pairs = MAX_CASES.bit_length()
    pairs = [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(num_pairs)]
    assert len(flat_cases({"allOf": pairs[:-1]}, {})) == MAX_CASES
    refusal = refusal_of(lambda: flat_cases({"allOf": pairs}, {}))
    assert limit_of(refusal) == ("schema_combinations", MAX_CASES)


def test_groups_nested_beyond_the_bound_are_refused() -> None:
    assert parse_regex("(" * MAX_REGEX_DEPTH + "a" + ")" * MAX_REGEX_DEPTH)
    depth = MAX_REGEX_DEPTH + 1
    refusal = refusal_of(lambda: parse_regex("(" * depth + "a" + ")" * depth))
    assert refusal.kind is RefusalKind.UNSUPPORTED_SCHEMA


@pytest.mark.parametrize("pattern", [r"[^\d]", r"[^\w-]", r"[^a\s]", "[]a]", "[^]a]"])
def test_classes_that_languages_read_differently_are_refused(pattern: str) -> None:
    assert refusal_of(lambda: parse_regex(pattern)).kind is RefusalKind.UNSUPPORTED_SCHEMA
