"""The report as JUnit XML, as GitHub, GitLab and Jenkins take it: a suite an area, a test a case.

Unsupported and inconclusive cases are skipped tests, with the reason as message: neither is a failure of the server.
"""

from xml.etree import ElementTree

from tidegate.conformance.reports.document import CaseDocument, Counts, ReportDocument
from tidegate.conformance.reports.words import describe_failure, first_fault
from tidegate.reporting.visible_text import one_line, visible

MAX_MESSAGE_CHARS = 300


def render_junit(document: ReportDocument) -> str:
    """Returns the XML. What XML cannot hold is spelled out."""
    root = ElementTree.Element("testsuites", {"name": "tidegate conform"} | _counts(document.counts))
    root.set("time", f"{document.duration_s:.3f}")
    for area in document.areas:
        cases = [case for case in document.cases if case.area == area.name]
        suite = ElementTree.SubElement(root, "testsuite", {"name": area.name} | _counts(area.counts))
        suite.set("time", f"{sum(case.duration_s for case in cases):.3f}")
        if document.started_at:
            suite.set("timestamp", document.started_at.removesuffix("Z"))
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (("base_url", document.server.base_url), ("model", document.server.model)):
            ElementTree.SubElement(properties, "property", name=name, value=one_line(value, MAX_MESSAGE_CHARS))
        for case in cases:
            suite.append(_case(case))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(counts: Counts) -> dict[str, str]:
    return {
        "tests": str(counts.total),
        "failures": str(counts.failed),
        "errors": "0",
        "skipped": str(counts.unsupported + counts.inconclusive),
    }


def _case(case: CaseDocument) -> ElementTree.Element:
    element = ElementTree.Element(
        "testcase", classname=f"conformance.{case.area}", name=case.id, time=f"{case.duration_s:.3f}"
    )
    if case.outcome == "fail":
        message = one_line(f"{case.title}: {first_fault(case)}", MAX_MESSAGE_CHARS)
        failure = ElementTree.SubElement(element, "failure", message=message, type=case.severity)
        failure.text = visible("\n".join(describe_failure(case)), keeps="\n\t")
    elif case.outcome != "pass":
        message = one_line(f"{case.outcome}: {case.reason}", MAX_MESSAGE_CHARS)
        ElementTree.SubElement(element, "skipped", message=message)
    return element
