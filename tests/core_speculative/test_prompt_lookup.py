"""What is guessed: against a search through the whole text, and with bounded work and memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.speculative.ngram_table import NGRAM, NgramTable, hash_of
from tidegate.core.speculative.prompt_lookup import (
    LONGEST_MATCH,
    NUM_PLACES,
    READ_AHEAD,
    PromptLookup,
    PromptNgrams,
)


def lookup(prompt: list[int]) -> PromptLookup:
    return PromptLookup(PromptNgrams(memoryview(np.array(prompt, "<u4").tobytes()).cast("I")))


def searched(text: list[int], max_tokens: int) -> list[int]:
    """The same guess, found by looking at every place."""
    length = len(text)
    ends = [end for end in range(length - 1, NGRAM - 1, -1) if text[end - NGRAM : end] == text[-NGRAM:]]
    best, best_match = None, NGRAM - 1
    for end in ends[:NUM_PLACES]:
        match = 0
        while match < min(LONGEST_MATCH, end) and text[end - 1 - match] == text[length - 1 - match]:
            match += 1
        if match > best_match:
            best, best_match = end, match
    if best is None:
        return []
    grown = list(text)
    for index in range(max_tokens):
        grown.append(grown[best + index])
    return grown[length:]


SMALL = st.lists(st.integers(0, 2), max_size=40)


@given(prompt=st.lists(st.integers(0, 2), min_size=1, max_size=40), output=SMALL, max_tokens=st.integers(1, 7))
def test_the_longest_recent_match_is_continued_after_every_token(
    prompt: list[int], output: list[int], max_tokens: int
) -> None:
    guesser, generated = lookup(prompt), list[int]()
    for token_id in output:
        generated.append(token_id)
        assert guesser.propose(generated, max_tokens) == searched(prompt + generated, max_tokens)


@given(output=SMALL, asked=st.lists(st.booleans(), min_size=40, max_size=40))
def test_a_guess_does_not_depend_on_when_others_were_asked_for(output: list[int], asked: list[bool]) -> None:
    prompt = [1, 2, 0, 1]
    guesser, generated = lookup(prompt), list[int]()
    for token_id, is_asked in zip(output, asked, strict=False):
        generated.append(token_id)
        if is_asked:
            assert guesser.propose(generated, 4) == searched(prompt + generated, 4)


CASES: list[tuple[list[int], list[int], list[int]]] = [
    ([1, 2, 3, 4, 5, 6, 9, 1, 2], [3], [4, 5, 6, 9]),
    ([7, 7], [7, 7], [7, 7, 7, 7]),
    ([1, 2, 1, 2, 1], [2], [1, 2, 1, 2]),
    ([5, 1, 2, 3, 8, 6, 1, 2, 3, 9, 5, 1, 2], [3], [8, 6, 1, 2]),
    ([5, 1, 2, 3, 8, 5, 1, 2, 3, 9, 5, 1, 2], [3], [9, 5, 1, 2]),
    ([1, 2, 3], [4], []),
    ([1], [2], []),
]


@pytest.mark.parametrize(("prompt", "generated", "expected"), CASES, ids=range(len(CASES)))
def test_known_guesses(prompt: list[int], generated: list[int], expected: list[int]) -> None:
    assert lookup(prompt).propose(generated, 4) == expected


def test_nothing_is_guessed_before_the_prompt_is_read_which_takes_parts() -> None:
    prompt = [*range(100), *[1000 + i for i in range(3 * READ_AHEAD)]]
    guesser = lookup(prompt)
    generated = [0, 1, 2]
    guesses = [guesser.propose(generated, 2) for _ in range(5)]
    assert guesses == [[], [], [], [3, 4], [3, 4]]


def test_choices_share_what_was_read_of_their_prompt() -> None:
    ngrams = PromptNgrams(memoryview(np.array([4, 5, 6, 7, 8], "<u4").tobytes()).cast("I"))
    first, second = PromptLookup(ngrams), PromptLookup(ngrams)
    assert first.propose([4, 5, 6], 2) == [7, 8]
    size = ngrams.table.num_bytes
    assert second.propose([5, 6, 7], 1) == [8]
    assert ngrams.table.num_bytes == size


@pytest.mark.parametrize("num_tokens", [100, 10_000, 100_000])
def test_memory_is_linear_in_the_text(num_tokens: int) -> None:
    table = NgramTable(NGRAM)
    for i in range(num_tokens):
        table.add(hash_of(i, i + 1, i + 2))
    assert table.num_bytes <= 24 * num_tokens + 1024


def test_a_text_of_one_token_costs_no_more_than_another() -> None:
    """Every place matches fully: the first is taken, and no chain is followed to its end."""
    table = NgramTable(NGRAM)
    hashed = hash_of(7, 7, 7)
    for _ in range(1000):
        table.add(hashed)
    ends = table.ends(hashed)
    assert [next(ends) for _ in range(3)] == [1002, 1001, 1000]
