"""What breaks the release of work whose client has gone."""

import threading
from dataclasses import dataclass, field

from harness.judged_case import Mutants
from harness.mutant import GoesOnAlone, Heard, Mutant, Said


@dataclass
class NeverCountsBack(Mutant):
    """A gauge of the metrics stays `amount` higher after the first `num_right` looks."""

    name: str
    amount: int = 4
    num_right: int = 1
    is_admin: bool = True
    num_looks: int = 0

    @property
    def says(self) -> str:
        return f"does not count back {self.name}"

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        if heard.target != "/metrics":
            return super().whole(heard, status, body)
        self.num_looks += 1
        if self.num_looks <= self.num_right:
            return body
        lines = [self._more(line) for line in body.decode().split("\n")]
        return "\n".join(lines).encode()

    def _more(self, line: str) -> str:
        name, _, value = line.rpartition(" ")
        return f"{name} {float(value) + self.amount}" if name == self.name else line


@dataclass
class SlowsDown(Mutant):
    """Short requests take `seconds` longer once `num_quick` of them were answered: slots are not given back."""

    num_quick: int
    seconds: float
    says: str = "answers late after clients have left"
    num_short: int = 0
    clock: threading.Event = field(default_factory=threading.Event)

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        if isinstance(value, dict) and value.get("max_tokens") == 4:
            self.num_short += 1
            if self.num_short > self.num_quick:
                self.clock.wait(self.seconds)
        return heard


_LEFT = (
    "after_request",
    "after_head",
    "after_first_event",
    "in_the_stream",
    "reset_in_the_stream",
    "reset_after_request",
    "while_streaming",
    "whole_answer",
    "reset_whole_answer",
    "all_choices",
    "all_choices_whole",
    "completions_stream",
    "batch_of_prompts",
    "many_streams",
    "many_resets",
    "queued",
    "blocks_of_streams",
    "blocks_of_whole_answers",
    "blocks_of_choices",
)

MUTANTS: Mutants = {
    **{f"cancellation.{what}": (GoesOnAlone(),) for what in _LEFT},
    "cancellation.in_half_of_the_body": (NeverCountsBack("tidegate_admission_requests"),),
    "cancellation.time_of_streams": (SlowsDown(2, 0.6),),
    "cancellation.time_of_whole_answers": (SlowsDown(2, 0.6),),
}
