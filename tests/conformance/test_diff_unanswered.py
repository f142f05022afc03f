"""An answer where none came before is no regression, and no answer is one difference; what was not told is not lost."""

from dataclasses import replace

import pytest

from tidegate.conformance.catalog import CASES
from tidegate.conformance.diff.compare import compare
from tidegate.conformance.diff.difference import Aspect, Meaning
from tidegate.conformance.diff.side import Side
from tidegate.conformance.judge import CaseRun
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.running.run_report import RunReport, result_of
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece
from tidegate.conformance.wire.target import Target

CASE = next(case for case in CASES if case.id == "models.list")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
PROBED = Probed(model="m", capabilities=frozenset(), absent={}, is_scripted=False, has_contract=False)


def _side(data: bytes, ending: Ending, probed: Probed = PROBED) -> Side:
    ask = CASE.asks[0]
    pieces = (Piece(0.1, data),) if data else ()
    exchange = Exchange(ask.name, 0, "GET", "http://a/v1/models", b"GET / HTTP/1.1\r\n\r\n", "", pieces, ending)
    result = result_of(CASE, (CaseRun({ask.name: (exchange,)}, ""),), 0.1)
    return Side("a", [RunReport(Target(base_url="http://a/v1"), probed, (result,), 0.1)])


WHOLE = _side(ANSWER, Ending.WHOLE)
SILENT = _side(b"", Ending.TIMED_OUT)
HALF = _side(ANSWER[:-1], Ending.CUT)


@pytest.mark.parametrize(
    ("old", "new", "meaning"),
    [
        (SILENT, WHOLE, Meaning.IMPROVEMENT),
        (WHOLE, SILENT, Meaning.REGRESSION),
        (HALF, WHOLE, Meaning.IMPROVEMENT),
        (WHOLE, HALF, Meaning.REGRESSION),
        (HALF, SILENT, Meaning.REGRESSION),
    ],
    ids=["comes now", "hangs now", "whole now", "cut now", "hangs where it was cut"],
)
def test_an_answer_that_did_not_come_is_one_difference(old: Side, new: Side, meaning: Meaning) -> None:
    found = [one for one in compare(old, new, tolerance=0.25) if one.aspect is not Aspect.VERDICT]
    assert [(one.aspect, one.meaning) for one in found] == [(Aspect.ENDING, meaning)]


@pytest.mark.parametrize(
    ("words", "old_has", "meaning"),
    [
        ("could not tell: nothing more came in time", True, Meaning.VARIATION),
        ("could not tell: nothing more came in time", False, Meaning.VARIATION),
        ("404: no such route", True, Meaning.REGRESSION),
        ("404: no such route", False, Meaning.IMPROVEMENT),
    ],
    ids=["untold now", "untold before", "refused now", "refused before"],
)
def test_a_capability_that_could_not_be_told_is_not_lost(words: str, old_has: bool, meaning: Meaning) -> None:
    has = replace(PROBED, capabilities=frozenset((Capability.TOOLS,)))
    lacks = replace(PROBED, absent={Capability.TOOLS: words})
    sides = [_side(ANSWER, Ending.WHOLE, probed) for probed in ((has, lacks) if old_has else (lacks, has))]
    assert [one.meaning for one in compare(*sides, tolerance=0.25)] == [meaning]
