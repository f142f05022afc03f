"""A comparison as JUnit XML: a test for each compared case, failed where it has a regression."""

from xml.etree import ElementTree

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.difference import Meaning
from tidegate.conformance.diff.report_lines import place_of, shorten
from tidegate.reporting.visible_text import visible


def render_junit(comparison: Comparison) -> str:
    """Returns the document."""
    suite = ElementTree.Element("testsuite", name="tidegate diff")
    regressions = comparison.of(Meaning.REGRESSION)
    compared = [case_id for case_id in comparison.old.cases if case_id in comparison.new.cases]
    names = [*(["capabilities"] if any(not d.case_id for d in regressions) else []), *compared]
    num_failed = 0
    for name in names:
        area = name.partition(".")[0]
        test = ElementTree.SubElement(suite, "testcase", classname=f"diff.{area}", name=name)
        found = [d for d in regressions if (d.case_id or "capabilities") == name]
        num_failed += bool(found)
        if found:
            text = "\n".join(
                f"{place_of(d)}: {shorten(d.old)} -> {shorten(d.new)} ({visible(d.because)})" for d in found
            )
            failure = ElementTree.SubElement(test, "failure", message=text.split("\n", 1)[0], type="regression")
            failure.text = text
    suite.set("tests", str(len(names)))
    suite.set("failures", str(num_failed))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
