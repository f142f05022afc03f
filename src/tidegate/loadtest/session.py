"""Session: what one caller asks, turn by turn. Most sessions have one turn; those of an agent grow. Pure."""

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request. `messages` come behind those of earlier turns and their answers; `prompt` stands in their place.

    `extra` holds more members of the body. `schema`: the JSON Schema that the answer must keep.
    """

    max_tokens: int
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    extra: Json = field(default_factory=dict)
    schema: Json | None = None
    num_prompt_tokens: int
    """As planned, with the history: what a budget counts with before a server has told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`group` names what is counted together, like `short` and `long`. `index` is the session's number in the load."""

    index: int
    group: str
    turns: tuple[Turn, ...]

    @property
    def planned_tokens(self) -> int:
        """Prompt and output of all turns, at most."""
        return sum(turn.num_prompt_tokens + turn.max_tokens for turn in self.turns)


def next_messages(history: list[Message], turn: Turn, answer: str | None) -> list[Message]:
    """Returns what the turn asks: `history` with the last answer, and the turn's own messages behind."""
    answered = [*history, {"role": "assistant", "content": answer}] if answer is not None else list(history)
    return [*answered, *turn.messages]
