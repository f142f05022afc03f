"""Each case about reasoning and tokens holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import reasoning, tokenizers, tokens

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(("reasoning", "tokens", "tokenizers"), reasoning.MUTANTS, tokens.MUTANTS, tokenizers.MUTANTS)
