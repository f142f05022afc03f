"""How an engine's adapter tells others what has happened: whoever raises harms nobody but itself.

`Report` gets the context of what was raised, as a loop's exception handler does.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tidegate.engine.port import DeltaSink
from tidegate.errors import ServeError

Report = Callable[[dict[str, Any]], None]
Fact = TypeVar("Fact")


def tell_all(observers: Sequence[Callable[[Fact], None]], fact: Fact, report: Report) -> None:
    """Tells every observer."""
    for observer in observers:
        try:
            observer(fact)
        except Exception as raised:
            report({"message": "an observer of the engine raised", "exception": raised})


def fail_sink(sink: DeltaSink, error: ServeError, report: Report) -> None:
    """Tells a request's sink that it has failed."""
    try:
        sink.fail(error)
    except Exception as raised:
        report({"message": "a sink raised", "exception": raised})
