"""Which control tokens are part of a format's markers, remembered by pairs of formats."""

from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_format import ReasoningMarkers
from tidegate.serving.output_reading import MAX_FORMATS, ControlTokens


def test_few_formats_are_remembered() -> None:
    controls = ControlTokens({"<tool_call>": 7, "<other>": 8})
    form = FAMILIES["hermes"]
    for number in range(2 * MAX_FORMATS):
        markers = ReasoningMarkers((f"<{number}>",), (f"</{number}>",))
        assert controls.spelled_in(form, markers) == controls.spelled_in(form, markers) == {7}
    assert len(controls._found) <= MAX_FORMATS
