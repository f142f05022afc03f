"""The tool calls of a stream, put together as a client does it, and the shape that their deltas must have."""

from dataclasses import dataclass
from typing import Any

from harness.event_stream import Stream

TEXT_OF = {"function": "arguments", "custom": "input"}


@dataclass(slots=True)
class StreamedCall:
    """One call; `text` is its arguments, or a custom tool's input."""

    call_id: str
    kind: str
    name: str
    text: str = ""

    def as_whole(self) -> dict[str, Any]:
        """Returns the call as a whole answer has it."""
        return {"id": self.call_id, "type": self.kind, self.kind: {"name": self.name, TEXT_OF[self.kind]: self.text}}


def calls_of(stream: Stream, index: int = 0) -> list[StreamedCall]:
    """Raises AssertionError for a delta that is neither a call's first nor a fragment of one that has begun."""
    calls: list[StreamedCall] = []
    for choice in stream.choices(index):
        for delta in choice.get("delta", {}).get("tool_calls", []):
            if delta["index"] == len(calls):
                calls.append(_first(delta))
            else:
                call = calls[delta["index"]]
                assert call is calls[-1], "a fragment of a call that is not the last"
                fragment = delta[call.kind][TEXT_OF[call.kind]]
                assert delta == {"index": delta["index"], call.kind: {TEXT_OF[call.kind]: fragment}}, delta
                assert fragment, "a fragment without text"
                call.text += fragment
    return calls


def _first(delta: dict[str, Any]) -> StreamedCall:
    kind = delta["type"]
    assert set(delta) == {"index", "id", "type", kind}, delta
    assert set(delta[kind]) == {"name", TEXT_OF[kind]}, delta
    assert delta["id"]
    assert delta[kind]["name"]
    assert delta[kind][TEXT_OF[kind]] == ""
    return StreamedCall(delta["id"], kind, delta[kind]["name"])


def function_call_of(stream: Stream, index: int = 0) -> dict[str, str] | None:
    """Returns the call of a deprecated request, put together; None where there is none."""
    deltas = [
        choice["delta"]["function_call"] for choice in stream.choices(index) if "function_call" in choice["delta"]
    ]
    if not deltas:
        return None
    assert set(deltas[0]) == {"name", "arguments"}
    assert all(set(delta) == {"arguments"} for delta in deltas[1:])
    return {"name": deltas[0]["name"], "arguments": "".join(delta["arguments"] for delta in deltas)}
