"""What breaks the service of slow clients, and of others beside them."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, GoesOnAlone, Heard, Mutant, Said


@dataclass
class LosesText(Mutant):
    """From the request `num_right` + 1 on, the first chunk with text is lost, or the last character of a whole text."""

    num_right: int = 2
    says: str = "loses text of who reads slowly"
    num_heard: int = 0

    def hear(self, heard: Heard) -> Heard | Said:
        self.num_heard += 1
        heard.notes["loses"] = self.num_heard > self.num_right
        return heard

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        has_text = any(choice["delta"].get("content") for choice in chunk["choices"])
        if heard.notes["loses"] and has_text:
            heard.notes["loses"] = False
        else:
            yield chunk

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        if heard.notes["loses"] and status == 200:
            message = value["choices"][0]["message"]
            message["content"] = message["content"][:-1]
        return value


@dataclass
class OneAtATime(Mutant):
    """After `num_right` requests, one waits until the answers before it are read."""

    num_right: int
    says: str = "lets all wait for who does not read"
    num_heard: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, heard: Heard) -> Heard | Said:
        self.num_heard += 1
        heard.notes["holds"] = self.num_heard > self.num_right and self.lock.acquire(timeout=3)
        return heard

    def _release(self, heard: Heard) -> None:
        if heard.notes.pop("holds", False):
            self.lock.release()

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        self._release(heard)
        return body

    def ending(self, heard: Heard) -> Iterable[bytes]:
        self._release(heard)
        return ()


def _in_one_piece(heard: Heard) -> Said | None:
    return Said(400, b"{}") if heard.num_reads > 3 else None


MUTANTS: Mutants = {
    "slow.pausing_reader": (LosesText(),),
    "slow.tiny_buffer": (LosesText(),),
    "slow.tiny_reads": (LosesText(),),
    "slow.whole_by_bits": (LosesText(),),
    "slow.sent_by_bytes": (Answers("takes requests only in one piece", _in_one_piece),),
    "slow.sent_slowly": (Answers("takes requests only in one piece", _in_one_piece),),
    "slow.one_stuck_reader": (OneAtATime(num_right=3),),
    "slow.many_stuck_readers": (OneAtATime(num_right=10),),
    "slow.large_stream": (LosesText(num_right=0),),
    "slow.stuck_reader_leaves": (GoesOnAlone(),),
}
