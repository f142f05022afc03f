"""The cache of compiled grammars: what is wanted is there, on its way or to be made, and bounds hold always."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.grammar.compile_cache import REFUSAL_BYTES, CompileCache, CompileKey, Lookup, compile_key
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
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

REFUSAL = GrammarRefusal(RefusalKind.INVALID_SCHEMA, "no")


@dataclass(frozen=True)
class Sized:
    num_bytes: int


def key(number: int) -> CompileKey:
    return CompileKey("b 1", "v", "regex", bytes([number]))


def test_everything_that_decides_about_a_compilation_is_in_its_key() -> None:
    specs: list[GrammarSpec] = [
        JsonSchemaSpec(b"{}"),
        JsonSchemaSpec(b"true"),
        JsonObjectSpec(),
        RegexSpec("a"),
        LarkSpec("a"),
        ChoiceSpec(("a",)),
        ChoiceSpec(("a", "b")),
        ChoiceSpec(("ab",)),
        StructuralTagSpec((StructuralTag("a", b"{}", "b"),), ("a",)),
        StructuralTagSpec((StructuralTag("a", b"{}", "b"),), ("a", "b")),
    ]
    keys = {compile_key(backend, vocabulary, spec) for backend in "ab" for vocabulary in "vw" for spec in specs}
    assert len(keys) == 4 * len(specs)
    assert compile_key("a", "v", RegexSpec("a")) == compile_key("a", "v", RegexSpec("a"))
    assert {made.kind for made in keys} >= {"json_schema", "json_object", "regex", "lark", "choice", "structural_tag"}


def test_a_grammar_is_compiled_once_for_all_who_want_it() -> None:
    cache = CompileCache[Sized](4, 100_000)
    assert [cache.look_up(key(1)) for _ in range(3)] == [Lookup.MISS, Lookup.PENDING, Lookup.PENDING]
    assert cache.outcome_of(key(1)) is None
    grammar = Sized(10)
    cache.finish(key(1), grammar, 0.5)
    assert cache.look_up(key(1)) is Lookup.HIT
    assert cache.outcome_of(key(1)) is grammar
    counts = cache.statistics()
    assert (counts.num_misses, counts.num_joined, counts.num_hits, counts.num_compiled) == (1, 2, 1, 1)
    assert (counts.compile_s, counts.longest_compile_s, counts.num_bytes, counts.num_pending) == (0.5, 0.5, 10, 0)
    [record] = cache.records()
    assert (record.key, record.compile_s, record.num_bytes, record.num_hits) == (key(1), 0.5, 10, 1)


def test_a_refusal_is_kept_like_a_grammar() -> None:
    cache = CompileCache[Sized](4, 100_000)
    cache.look_up(key(1))
    cache.finish(key(1), REFUSAL, 0.25)
    assert cache.look_up(key(1)) is Lookup.HIT
    assert cache.outcome_of(key(1)) is REFUSAL
    assert cache.statistics().num_refused == 1
    assert cache.statistics().num_bytes == REFUSAL_BYTES


def test_what_nobody_compiles_any_more_is_compiled_by_the_next() -> None:
    cache = CompileCache[Sized](4, 100_000)
    cache.look_up(key(1))
    cache.note_timeout()
    cache.drop(key(1))
    assert cache.look_up(key(1)) is Lookup.MISS
    assert cache.statistics().num_timeouts == 1


def test_the_least_recently_used_is_forgotten_first() -> None:
    cache = CompileCache[Sized](2, 100_000)
    for number in (1, 2):
        cache.look_up(key(number))
        cache.finish(key(number), Sized(1), 0.0)
    cache.look_up(key(1))
    cache.look_up(key(3))
    cache.finish(key(3), Sized(1), 0.0)
    assert [record.key for record in cache.records()] == [key(1), key(3)]
    assert cache.statistics().num_evicted == 1


def test_what_is_larger_than_the_whole_cache_is_not_kept_and_evicts_nobody() -> None:
    cache = CompileCache[Sized](4, 100)
    cache.finish(key(1), Sized(60), 0.0)
    cache.finish(key(2), Sized(101), 0.0)
    assert [record.key for record in cache.records()] == [key(1)]
    assert cache.look_up(key(2)) is Lookup.MISS


@pytest.mark.parametrize(("entries", "size"), [(0, 1), (1, 0)])
def test_a_cache_without_room_is_an_error(entries: int, size: int) -> None:
    with pytest.raises(ValueError, match="needs room"):
        CompileCache[Sized](entries, size)


@given(
    st.lists(st.tuples(st.sampled_from(("look", "finish", "drop")), st.integers(0, 6), st.integers(1, 60))),
    st.integers(1, 4),
    st.integers(1, 100),
)
def test_bounds_and_counts_hold_whatever_happens(
    acts: list[tuple[str, int, int]], max_entries: int, max_bytes: int
) -> None:
    cache = CompileCache[Sized](max_entries, max_bytes)
    for act, number, size in acts:
        match act:
            case "look":
                found = cache.look_up(key(number))
                assert (cache.outcome_of(key(number)) is not None) == (found is Lookup.HIT)
            case "finish":
                cache.finish(key(number), Sized(size), 0.0)
            case _:
                cache.drop(key(number))
        records = list(cache.records())
        counts = cache.statistics()
        assert counts.num_entries == len(records) <= max_entries
        assert counts.num_bytes == sum(record.num_bytes for record in records) <= max_bytes
