"""How endings are called in reports: the names of the document, and the labels of drawings."""

from collections.abc import Mapping

from tidegate.conformance.reports.document import EndingName
from tidegate.conformance.wire.exchange import Ending

ENDINGS: Mapping[Ending, EndingName] = {
    Ending.WHOLE: "WHOLE",
    Ending.CUT: "CUT",
    Ending.RESET: "RESET",
    Ending.TIMED_OUT: "TIMED_OUT",
    Ending.LEFT: "LEFT",
    Ending.NO_CONNECTION: "NO_CONNECTION",
    Ending.NOT_HTTP: "NOT_HTTP",
    Ending.ENDLESS: "ENDLESS",
}
LABELS: Mapping[EndingName, str] = {
    "WHOLE": "end",
    "CUT": "✕ cut off",
    "RESET": "✕ reset",
    "TIMED_OUT": "✕ timed out",
    "LEFT": "we leave",
    "NO_CONNECTION": "✕ no connection",
    "NOT_HTTP": "✕ not HTTP",
    "ENDLESS": "✕ without end",
}
