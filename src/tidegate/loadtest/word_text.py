"""Text of about as many tokens as wanted: common short words, which most vocabularies hold as one token each. Pure."""

from dataclasses import dataclass

from tidegate.loadtest.dice import Dice

_TEXT = """
time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head house
service friend father power hour game line end member law car city community name president team minute idea
body information back parent face others level office door health person art war history party result change
morning reason research girl guy moment air teacher force education foot boy age policy music market sense
nation plan college interest death experience effect use class control care field development role effort rate
heart drug show leader light voice wife police mind price report decision son view town road form value action
model season society tax player position movie news paper space ground river rain snow stone sand wind sea
fire bird fish tree leaf
"""
WORDS = tuple(_TEXT.split())


@dataclass(frozen=True, slots=True)
class WordRate:
    """How words become tokens, as a server's own counts showed: `fixed` for what surrounds them, `per_word` each."""

    per_word: float = 1.0
    fixed: float = 0.0
    is_measured: bool = False

    def words_for(self, num_tokens: int, *, is_whole: bool = True) -> int:
        """Returns how many words make a prompt of about `num_tokens`; at least one. `is_whole`: with what surrounds."""
        return max(1, round((num_tokens - (self.fixed if is_whole else 0.0)) / self.per_word))


def rate_of(short: tuple[int, int], long: tuple[int, int]) -> WordRate:
    """Returns the rate through two measured points (words, tokens); the plain one where they make no sense."""
    per_word = (long[1] - short[1]) / (long[0] - short[0])
    if not 0.2 <= per_word <= 20:
        return WordRate()
    return WordRate(per_word, max(0.0, short[1] - per_word * short[0]), is_measured=True)


def write_text(dice: Dice, num_words: int) -> str:
    """Returns that many words, drawn one by one."""
    return " ".join([WORDS[number] for number in dice.many_below(len(WORDS), num_words)])
