"""Guesses the next tokens of a text: it finds where its last tokens stood before, and proposes what followed there.

Decides which earlier place: of the newest few, the one that agrees furthest back; of equals the newest. At least three
tokens must agree. Where the place reaches the end of the text, its continuation goes on into itself, so that a text
which repeats with any period is continued with that period. Does not know whether a guess pays.

Work: a new token costs constant time. A prompt is read in parts, `READ_AHEAD` tokens for each call at most; until all
is read there is no guess. Choices of one request share what was read of their prompt.
"""

from itertools import islice

from tidegate.core.speculative.ngram_table import NGRAM, NgramTable, hash_of

NUM_PLACES = 8
"""Earlier places that are compared."""
LONGEST_MATCH = 16
"""Tokens back that a place is compared; the first to agree in all of them is taken."""
READ_AHEAD = 8192
"""Tokens that one call reads at most."""


class PromptNgrams:
    """The runs of one prompt, for all choices that continue it."""

    def __init__(self, prompt: "memoryview[int]") -> None:
        self.prompt = prompt
        self.table = NgramTable(NGRAM)

    @property
    def is_read(self) -> bool:
        return self.table.next_end > len(self.prompt)

    def read(self, max_tokens: int = READ_AHEAD) -> None:
        """Reads on in the prompt."""
        table, start = self.table, self.table.next_end
        part = self.prompt[start - NGRAM : start + max_tokens].tolist()
        for first, second, third in zip(part, part[1:], part[2:], strict=False):
            if table.next_end >= start + max_tokens:
                break
            table.add(hash_of(first, second, third))


class PromptLookup:
    """The guesser of one sequence. `generated` is the same growing list in every call."""

    def __init__(self, ngrams: PromptNgrams) -> None:
        self._ngrams = ngrams
        self._prompt = ngrams.prompt
        self._own = NgramTable(max(NGRAM, len(ngrams.prompt) + 1))

    def propose(self, generated: list[int], max_tokens: int) -> list[int]:
        """Returns at most `max_tokens` tokens that may follow; none where nothing is known."""
        length = len(self._prompt) + len(generated)
        if not self._ngrams.is_read:
            self._ngrams.read()
        if not self._read_own(generated, length) or not self._ngrams.is_read or length < NGRAM or max_tokens < 1:
            return []
        end = self._best_place(generated, length)
        if end is None:
            return []
        found = self._tokens(generated, end, min(end + max_tokens, length))
        for index in range(len(found), max_tokens):
            found.append(found[index - (length - end)])
        return found

    def _read_own(self, generated: list[int], length: int) -> bool:
        """Adds every run that ends before the text does; the last one would only find itself."""
        own, last = self._own, self._own.next_end + READ_AHEAD
        while own.next_end < min(length, last):
            own.add(hash_of(*self._tokens(generated, own.next_end - NGRAM, own.next_end)))
        return own.next_end >= length

    def _best_place(self, generated: list[int], length: int) -> int | None:
        tail = self._tokens(generated, max(0, length - LONGEST_MATCH), length)
        hashed = hash_of(*tail[-NGRAM:])
        places = list(islice(self._own.ends(hashed), NUM_PLACES))
        places += islice(self._ngrams.table.ends(hashed), NUM_PLACES - len(places))
        best, best_match = None, NGRAM - 1
        for end in places:
            before = self._tokens(generated, max(0, end - len(tail)), end)
            match = _common_suffix(before, tail)
            if match > best_match:
                best, best_match = end, match
            if match == len(tail):
                break
        return best

    def _tokens(self, generated: list[int], start: int, end: int) -> list[int]:
        num_prompt = len(self._prompt)
        if start >= num_prompt:
            return generated[start - num_prompt : end - num_prompt]
        inside = self._prompt[start:end].tolist()
        return inside if end <= num_prompt else inside + generated[: end - num_prompt]


def _common_suffix(left: list[int], right: list[int]) -> int:
    length = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        length += 1
    return length
