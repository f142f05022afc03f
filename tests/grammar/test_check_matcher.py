"""The shipped checker on every backend, and what a batch of masks costs no other row."""

import sys

import pytest

from tidegate.grammar.llguidance.llguidance_compiler import make_compiler, require_version
from tidegate.grammar.llguidance.llguidance_matcher import LlguidanceMatcher
from tidegate.grammar.mask_buffer import allowed_ids, make_mask_words
from tidegate.grammar.matcher import MaskRow, TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.registry import UnknownBackend, find_backend
from tidegate.inference.grammar_spec import ChoiceSpec, JsonObjectSpec, LarkSpec
from tidegate.testing.check_matcher import check_matcher


@pytest.mark.parametrize("name", ["llguidance", "xgrammar"])
def test_a_backend_keeps_the_rules_of_the_port(name: str) -> None:
    if name == "xgrammar":
        pytest.importorskip("xgrammar", reason="the extra tidegate[xgrammar] is not installed")
    make = find_backend(name)
    assert make is not None
    check_matcher(make)


def test_a_backend_is_found_by_name_or_the_message_says_what_there_is() -> None:
    assert find_backend("none") is None
    with pytest.raises(
        UnknownBackend, match="no grammar backend is called other; there are llguidance, none, xgrammar"
    ):
        find_backend("other")


def test_a_backend_that_is_not_installed_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    monkeypatch.delitem(sys.modules, "tidegate.grammar.xgrammar.xgrammar_compiler", raising=False)
    with pytest.raises(UnknownBackend, match=r"pip install 'tidegate\[xgrammar\]'"):
        find_backend("xgrammar")


def test_backends_of_other_distributions_come_by_entry_point_and_take_no_name_of_ours() -> None:
    from importlib.metadata import EntryPoint

    group = "tidegate.grammar_backends"
    there = EntryPoint("other", "tidegate.grammar.llguidance.llguidance_compiler:make_compiler", group)
    taken = EntryPoint("llguidance", "no.such.module:make", group)
    gone = EntryPoint("gone", "no.such.module:make", group)
    assert find_backend("other", [there, taken, gone]) is make_compiler
    assert find_backend("llguidance", [there, taken, gone]) is make_compiler
    with pytest.raises(UnknownBackend, match="cannot be imported"):
        find_backend("gone", [there, taken, gone])


def test_a_vocabulary_without_an_end_token_carries_no_grammar() -> None:
    with pytest.raises(ValueError, match="end token"):
        make_compiler(TokenTable([b"a"], frozenset(), ()))


def test_a_dead_end_is_an_empty_row_and_a_draft_into_one_costs_nothing() -> None:
    compiler = make_compiler(TokenTable([b"a", b"b", b"c", b"<eos>"], frozenset({3}), (3,)))
    words = make_mask_words(1, 3, 4)
    compiler.register(words)
    grammar = compiler.compile(ChoiceSpec(("abc", "axc", "b")))
    assert not isinstance(grammar, GrammarRefusal)
    dead = compiler.compile(LarkSpec('start: "a" "{" | "b" "c"'))
    assert not isinstance(dead, GrammarRefusal)
    machine = dead.make_matcher()
    assert compiler.fill([MaskRow(machine, 0, [1, 2, 3])]) == [3]
    assert compiler.fill([MaskRow(machine, 0, [0, 1])]) in ([0], [1])
    assert allowed_ids(words[0], 4) == [1] or allowed_ids(words[0], 4) == [0, 1]
    assert machine.accept([1, 2])
    assert machine.is_terminated


@pytest.mark.parametrize("told", ["llguidance@1.7.6 (abc)", "llguidance@1.8.0", "llguidance"])
def test_a_library_that_enforces_less_is_not_used(told: str) -> None:
    with pytest.raises(ValueError, match=r"1\.9 is needed"):
        require_version(told)


@pytest.mark.parametrize("told", ["llguidance@1.9.0 (abc)", "llguidance@1.10.1", "llguidance@2.0"])
def test_a_library_that_is_new_enough_is(told: str) -> None:
    require_version(told)


def test_machines_of_one_grammar_do_not_know_each_other() -> None:
    compiler = make_compiler(TokenTable([bytes([i]) for i in range(256)] + [b"<eos>"], frozenset({256}), (256,)))
    words = make_mask_words(2, 0, 257)
    compiler.register(words)
    grammar = compiler.compile(JsonObjectSpec())
    assert not isinstance(grammar, GrammarRefusal)
    one, other = grammar.make_matcher(), grammar.make_matcher()
    assert isinstance(one, LlguidanceMatcher)
    assert one.accept(list(b'{"a"'))
    compiler.fill([MaskRow(one, 0), MaskRow(other, 1)])
    assert allowed_ids(words[1], 257) == [ord("{")]
    assert ord(":") in allowed_ids(words[0], 257)
    assert compiler.identity.startswith("llguidance 1.9.")
    assert grammar.num_bytes > 0
