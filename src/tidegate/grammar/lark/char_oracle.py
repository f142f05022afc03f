"""Which characters a class of a regular expression holds: llguidance itself is asked, so its own reading counts."""

import re
from functools import cache

import llguidance

from tidegate.grammar.lark.lark_tree import OneOf
from tidegate.grammar.lark.llguidance_tokenizer import make_tokenizer
from tidegate.grammar.matcher import TokenTable

SINGLE = re.compile(r"\\x\{([0-9a-f]+)\}")
_HEADER = '%llguidance {"no_forcing": true}\n'


@cache
def byte_tokenizer() -> llguidance.LLTokenizer:
    """One token a byte, and an end token."""
    return make_tokenizer(TokenTable([*(bytes([i]) for i in range(256)), b"<end>"], frozenset({256}), (256,)))


def class_of(one: OneOf, without: str = "") -> str:
    """Returns the regular expression of a class; `without`: the inside of a class that is taken out of it."""
    inside = f"[{one.inside}]&&[^{without}]" if without else one.inside
    return f"(?i:[{inside}])" if one.is_any_case else f"[{inside}]"


class CharOracle:
    """Remembers what it was asked, for one grammar."""

    def __init__(self, characters: str) -> None:
        self._characters = characters
        self._held: dict[OneOf, frozenset[str]] = {}
        self._beyond: dict[tuple[OneOf, str], bool] = {}

    def held(self, one: OneOf) -> frozenset[str]:
        """Returns those of the characters that the class holds."""
        found = self._held.get(one)
        if found is None:
            single = SINGLE.fullmatch(one.inside)
            if single is not None and not one.is_any_case:
                found = frozenset(self._characters) & {chr(int(single[1], 16))}
            else:
                found = self._ask(one)
            self._held[one] = found
        return found

    def holds_beyond(self, one: OneOf, without: str) -> bool:
        """Whether the class holds any character that is not in the class `without`."""
        key = (one, without)
        if key not in self._beyond:
            mask = _machine(class_of(one, without)).compute_bitmask()
            self._beyond[key] = any(mask[:32])
        return self._beyond[key]

    def holds_others(self, one: OneOf) -> bool:
        """Whether the class holds any character but those."""
        return self.holds_beyond(one, "".join(f"\\x{{{ord(character):x}}}" for character in self._characters))

    def _ask(self, one: OneOf) -> frozenset[str]:
        machine = _machine(class_of(one))
        encoded = {character: list(character.encode()) for character in self._characters}
        return frozenset(c for c, tokens in encoded.items() if machine.validate_tokens(tokens) == len(tokens))


def _machine(pattern: str) -> llguidance.LLMatcher:
    return llguidance.LLMatcher(byte_tokenizer(), f"{_HEADER}start: /{pattern}/", log_level=0)
