"""A stream's bytes as data, read with the strict reader."""

import json
from dataclasses import dataclass, field
from typing import Any

from harness.error_leaks import find_leak
from tidegate.conformance.wire.sse_reader import SseReader

DONE = "[DONE]"


@dataclass(slots=True)
class Stream:
    """`chunks` are the JSON events in order, `is_done` says that the end marker came, last and once."""

    chunks: list[dict[str, Any]] = field(default_factory=list)
    num_done: int = 0
    is_done_last: bool = False
    findings: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [chunk["error"] for chunk in self.chunks if "error" in chunk]

    def choices(self, index: int = 0) -> list[dict[str, Any]]:
        return [choice for chunk in self.chunks for choice in chunk.get("choices", []) if choice["index"] == index]

    def content(self, index: int = 0) -> str:
        return "".join(choice.get("delta", {}).get("content") or "" for choice in self.choices(index))

    def reasoning(self, index: int = 0, member: str = "reasoning_content") -> str:
        return "".join(choice.get("delta", {}).get(member) or "" for choice in self.choices(index))

    def text(self, index: int = 0) -> str:
        return "".join(choice.get("text") or "" for choice in self.choices(index))

    def finish_reasons(self, index: int = 0) -> list[str]:
        return [choice["finish_reason"] for choice in self.choices(index) if choice["finish_reason"] is not None]

    @property
    def usage(self) -> dict[str, Any] | None:
        return next((chunk["usage"] for chunk in reversed(self.chunks) if chunk.get("usage")), None)


def read_stream(body: bytes) -> Stream:
    """Parses a whole stream body. Every deviation from the framing is in `findings`."""
    reader = SseReader()
    events = [*reader.feed(body), *(reader.finish() or [])]
    stream = Stream(findings=[str(finding) for finding in reader.findings])
    for event in events:
        stream.is_done_last = event.data == DONE
        if stream.is_done_last:
            stream.num_done += 1
        else:
            stream.chunks.append(json.loads(event.data))
            if "error" in stream.chunks[-1]:
                assert find_leak(event.data.encode()) is None, event.data
    return stream
