"""PromptFlow: the prompts of one call on their way into the engine and out of it.

Decides which prompts the engine has: all at once, or with a `width` so many sequences at a time, the next prompt going
in when an earlier one has left. A call of thousands of texts so never takes all rows, nor fills the engine's queue.

Does not know what comes out, nor how the call ends.
"""

from collections.abc import Sequence
from typing import Protocol

from tidegate.engine.port import Engine
from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta
from tidegate.serving.echo import PromptEcho, needs_echo
from tidegate.serving.prepared import PreparedPrompt


class Receiver(Protocol):
    """Who is told what the engine says."""

    def deliver(self, sink: "PromptSink", delta: TokenDelta) -> None: ...

    def fail(self, error: ServeError) -> None: ...


class PromptSink:
    """Where the deltas of one prompt go: `base` is the index of its first choice."""

    def __init__(self, receiver: Receiver, prompt: PreparedPrompt, base: int, num_choices: int) -> None:
        self.request = prompt.request
        self.base = base
        self.num_prompt_tokens = prompt.request.num_prompt_tokens
        self.echo = PromptEcho(prompt) if needs_echo(prompt) else None
        self.num_cached_tokens = 0
        self.is_open = [True] * num_choices
        self._receiver = receiver

    @property
    def request_id(self) -> str:
        return self.request.request_id

    def deliver(self, delta: TokenDelta) -> None:
        self._receiver.deliver(self, delta)

    def fail(self, error: ServeError) -> None:
        self._receiver.fail(error)


class PromptFlow:
    """`width` is None for all prompts at once."""

    def __init__(
        self,
        prompts: Sequence[PreparedPrompt],
        num_choices: int,
        receiver: Receiver,
        width: int | None = None,
    ) -> None:
        self.sinks = [PromptSink(receiver, prompt, i * num_choices, num_choices) for i, prompt in enumerate(prompts)]
        self._width = width
        self._num_submitted = 0
        self._num_inside = 0

    @property
    def has_waiting(self) -> bool:
        """Whether there are prompts that the engine has not been given."""
        return self._num_submitted < len(self.sinks)

    def submit(self, engine: Engine) -> None:
        """Gives the engine what it may have now. Raises the engine's refusal of one prompt; the earlier ones are in."""
        while self.has_waiting and (self._width is None or self._num_inside < self._width):
            sink = self.sinks[self._num_submitted]
            engine.submit(sink.request, sink)
            self._num_submitted += 1
            self._num_inside += len(sink.is_open)

    def note_closed(self) -> None:
        """One choice has left the engine."""
        self._num_inside -= 1

    def abort(self, engine: Engine) -> int:
        """Ends what is in the engine; returns how many choices had not been given to it, and never will be."""
        for sink in self.sinks[: self._num_submitted]:
            if any(sink.is_open):
                engine.abort(sink.request_id)
        return self.drop_waiting()

    def drop_waiting(self) -> int:
        """Gives up what the engine has not been given; returns how many choices that were."""
        waiting = self.sinks[self._num_submitted :]
        self._num_submitted = len(self.sinks)
        num_dropped = sum(sum(sink.is_open) for sink in waiting)
        for sink in waiting:
            sink.is_open = [False] * len(sink.is_open)
            sink.num_prompt_tokens = 0
        return num_dropped

    def close(self) -> None:
        """Takes nothing more from the engine."""
        self.drop_waiting()
        for sink in self.sinks:
            sink.is_open = [False] * len(sink.is_open)

    def hold(self, engine: Engine, *, held: bool) -> None:
        """Lets the engine rest, or go on, with what it has."""
        for sink in self.sinks[: self._num_submitted]:
            if any(sink.is_open):
                engine.hold(sink.request_id, held=held)
