"""Each case about the end of a server holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import drain

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(("drain",), drain.MUTANTS, hurry=0.4, hurries_scripts=True)
