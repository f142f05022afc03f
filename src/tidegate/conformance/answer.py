"""Answer: what a client makes of a generation, whole or streamed, chat or completion: the same shape from all four.

Takes what is there and forgives what is missing or of another type (the checks of shape say so); adds nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


@dataclass(slots=True)
class ToolCall:
    """`name` and `arguments` are put together from all fragments. `kind`: `function` or `custom`."""

    index: int
    id: str | None = None
    kind: str | None = None
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Choice:
    """`finish_reasons`: all that were told, in order; a right answer tells one. `logprobs`: entries in order."""

    index: int
    role: str | None = None
    text: str = ""
    has_text: bool = False
    reasoning: str = ""
    refusal: str = ""
    tool_calls: dict[int, ToolCall] = field(default_factory=dict)
    finish_reasons: list[str] = field(default_factory=list)
    stop_reason: Any = None
    logprobs: list[Any] = field(default_factory=list)
    completion_logprobs: list[Any] = field(default_factory=list)

    @property
    def finish_reason(self) -> str | None:
        return self.finish_reasons[-1] if self.finish_reasons else None


@dataclass(slots=True)
class Answer:
    """`error`: the error object, of the body or of an event. `usage`: the last one told that is not null."""

    choices: dict[int, Choice] = field(default_factory=dict)
    usage: Any = None
    error: Any = None

    def choice(self, index: int = 0) -> Choice:
        """Returns the choice; an empty one where it is missing."""
        return self.choices.get(index, Choice(index))

    @property
    def text(self) -> str:
        """Text of the first choice."""
        return self.choice().text


def read_answer(exchange: Exchange) -> Answer:
    """Returns what the exchange's body or stream says."""
    answer = Answer()
    for body in exchange.chunks if exchange.is_stream else (exchange.json,):
        _take_body(answer, body)
    return answer


def _take_body(answer: Answer, body: Any) -> None:
    error = at(body, "error")
    if error is not MISSING and error is not None:
        answer.error = error
    usage = at(body, "usage")
    if usage is not MISSING and usage is not None:
        answer.usage = usage
    choices = at(body, "choices")
    for position, raw in enumerate(choices if isinstance(choices, list) else []):
        index = at(raw, "index")
        if not isinstance(index, int):
            index = position
        _take_choice(answer.choices.setdefault(index, Choice(index)), raw)


def _take_choice(choice: Choice, raw: Any) -> None:
    for name in ("message", "delta"):
        _take_message(choice, at(raw, name))
    if isinstance(text := at(raw, "text"), str):
        choice.text += text
        choice.has_text = True
    if isinstance(reason := at(raw, "finish_reason"), str):
        choice.finish_reasons.append(reason)
    if (stop_reason := at(raw, "stop_reason")) is not MISSING and stop_reason is not None:
        choice.stop_reason = stop_reason
    if isinstance(entries := at(raw, "logprobs", "content"), list):
        choice.logprobs += entries
    elif isinstance(at(raw, "logprobs", "tokens"), list):
        choice.completion_logprobs.append(at(raw, "logprobs"))


def _take_message(choice: Choice, message: Any) -> None:
    if isinstance(role := at(message, "role"), str):
        choice.role = role
    if isinstance(text := at(message, "content"), str):
        choice.text += text
        choice.has_text = True
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := at(message, name), str):
            choice.reasoning += text
            break
    if isinstance(text := at(message, "refusal"), str):
        choice.refusal += text
    calls = at(message, "tool_calls")
    for position, raw in enumerate(calls if isinstance(calls, list) else []):
        index = at(raw, "index")
        _take_call(choice, raw, index if isinstance(index, int) else position)


def _take_call(choice: Choice, raw: Any, index: int) -> None:
    call = choice.tool_calls.setdefault(index, ToolCall(index))
    if isinstance(call_id := at(raw, "id"), str):
        call.id = call_id
    if isinstance(kind := at(raw, "type"), str):
        call.kind = kind
    for part, name, arguments in (("function", "name", "arguments"), ("custom", "name", "input")):
        if isinstance(text := at(raw, part, name), str):
            call.name += text
        if isinstance(text := at(raw, part, arguments), str):
            call.arguments += text
