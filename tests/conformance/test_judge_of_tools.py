"""Each case about tools holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import tools, tools_offered, tools_streamed

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(("tools",), tools.MUTANTS, tools_streamed.MUTANTS, tools_offered.MUTANTS)
