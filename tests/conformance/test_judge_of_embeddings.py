"""Each case about embeddings and scores holds on a right server, and catches its mutants."""

import pytest

from harness.judged_case import RightServers, cases_of, judged, run_case
from mutants import embeddings, scores
from tidegate.conformance.case import Case
from tidegate.conformance.verdict import Outcome

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("embeddings", "scores"),
    embeddings.MUTANTS,
    scores.MUTANTS,
    bases={**dict.fromkeys(embeddings.MUTANTS, "embeddings"), **dict.fromkeys(scores.MUTANTS, "simulated")},
)


@pytest.mark.process
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases_of("embeddings")])
def test_the_case_holds_on_our_own_server(servers: RightServers, case: Case) -> None:
    result = run_case(case, servers.fit_for(case, "simulated"))
    assert result.verdict.outcome is Outcome.PASS, result.verdict
