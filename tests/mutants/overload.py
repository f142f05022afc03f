"""What breaks under load."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsHead, Heard, Mutant, Said
from mutants.cancellation import NeverCountsBack, SlowsDown

_BUSY = json.dumps(
    {"error": {"message": "busy", "type": "overloaded_error", "param": None, "code": "no_capacity"}}
).encode()


@dataclass
class Every(Mutant):
    """Every fifth request that generates is taken by `takes`, which may answer it; its stream or body is cut off where
    `cuts` is set.
    """

    says: str
    answer: Said | None = None
    cuts: bool = False
    num_heard: int = 0

    def hear(self, heard: Heard) -> Heard | Said:
        self.num_heard += 1
        heard.notes["is_taken"] = self.num_heard % 5 == 0
        return self.answer if self.answer is not None and heard.notes["is_taken"] else heard

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        if not (self.cuts and heard.notes["is_taken"] and position > 2):
            yield from super().frame(heard, data, position)

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return {} if self.cuts and heard.notes["is_taken"] else value


@dataclass
class LosesChoices(Mutant):
    """Nothing of the choices from 3 on is sent."""

    says: str = "sends three choices of four"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        if all(choice["index"] < 3 for choice in chunk["choices"]):
            yield chunk


@dataclass
class BusyBeside(Mutant):
    """Other routes are answered with 503 once requests to generate have come."""

    path: str
    says: str = "answers nothing else while requests run"
    is_busy: bool = False

    def hear(self, heard: Heard) -> Heard | Said:
        self.is_busy = self.is_busy or heard.method == "POST"
        return Said(503, _BUSY) if self.is_busy and heard.target.endswith(self.path) else heard


@dataclass
class StarvesShortOnes(Mutant):
    """Once two long prompts have come at once, others wait for `seconds`, and the long ones do not."""

    seconds: float = 2.0
    says: str = "lets short requests wait for longer than long prompts take"
    num_long: int = 0
    clock: threading.Event = field(default_factory=threading.Event)

    def hear(self, heard: Heard) -> Heard | Said:
        if len(heard.body) > 1000:
            self.num_long += 1
        elif self.num_long > 1:
            self.clock.wait(self.seconds)
        return heard


def _cut() -> Every:
    return Every("cuts answers off under load", cuts=True)


def _fails(status: int, body: bytes, says: str) -> Every:
    return Every(says, answer=Said(status, body, [("Content-Type", "application/json")]))


def _all_away() -> Answers:
    return Answers("refuses all", lambda heard: Said(503, _BUSY))


def _some_500() -> EditsHead:
    bad: list[Heard] = []

    def change(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        if status == 400:
            bad.append(heard)
        return 500 if status == 400 and len(bad) > 1 else status, headers

    return EditsHead("answers wrong requests with 500 while others run", change)


MUTANTS: Mutants = {
    "overload.burst_of_32": (
        _cut(),
        _fails(500, b"oops", "fails under load"),
        _fails(503, b"busy", "refuses in its own words"),
        _all_away(),
    ),
    "overload.burst_of_64": (_cut(),),
    "overload.burst_of_whole_answers": (_cut(), _fails(500, b"oops", "fails under load")),
    "overload.burst_of_completions": (_cut(),),
    "overload.mixed_burst": (_cut(), _some_500()),
    "overload.choices_at_once": (LosesChoices(),),
    "overload.normal_afterwards": (SlowsDown(2, 2.0),),
    "overload.rest_afterwards": (NeverCountsBack("tidegate_requests_running"),),
    "overload.short_beside_long": (StarvesShortOnes(),),
    "overload.list_under_load": (BusyBeside("/models"),),
    "overload.refusals_say_when": (_fails(503, _BUSY, "does not say when to come again"),),
    "overload.health_under_load": (BusyBeside("/healthz"), BusyBeside("/health")),
}
