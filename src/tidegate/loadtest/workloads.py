"""Workloads: which sessions a load is made of. The same orders, seed and index give the same session. Pure.

| kind | a session |
|---|---|
| fixed | one prompt that no other session shares |
| shared-prefix | one of a few long system messages, and a prompt of its own behind it |
| agent | a conversation: an order, then in each turn the result of a tool; the server's answers become history |
| mixed | a short prompt with a long answer, and every so often a long prompt with a short answer |
| constrained | a prompt whose answer must keep a JSON Schema |

Lengths are planned in tokens and written in words; how many tokens a word is, the server is asked (`WordRate`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tidegate.loadtest.answer_schemas import SCHEMAS
from tidegate.loadtest.dice import Dice
from tidegate.loadtest.length import Length
from tidegate.loadtest.session import Json, Message, Session, Turn
from tidegate.loadtest.word_text import WordRate, write_text

LONG_OUTPUT_TOKENS = 8
"""Of a mixed load: who sends a long prompt wants it read, and little more."""


class Kind(Enum):
    """See the module. `FILE`: sessions that a file names (`session_file.py`)."""

    FIXED = "fixed"
    SHARED_PREFIX = "shared-prefix"
    AGENT = "agent"
    MIXED = "mixed"
    CONSTRAINED = "constrained"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`file`: the sessions of a file, taken in turns. `schemas`: those of constrained answers."""

    kind: Kind
    seed: int
    input: Length
    output: Length
    prefix_tokens: int
    num_prefixes: int = 1
    num_turns: int = 4
    long_input: Length
    long_every: int = 5
    schemas: tuple[Json, ...] = SCHEMAS
    file: tuple[Session, ...] = field(default=())
    words: WordRate = field(default_factory=WordRate)


def make_session(workload: Workload, index: int) -> Session:
    """Returns the session of this number. Warm-up sessions have negative numbers: they share no prompt with others."""
    if workload.kind is Kind.FILE:
        found = workload.file[index % len(workload.file)]
        return Session(index=index, group=found.group, turns=found.turns)
    dice = Dice(workload.seed, workload.kind.value, "warm" if index < 0 else "load", abs(index))
    return _MAKERS[workload.kind](workload, index, dice)


def _plain(workload: Workload, dice: Dice, length: Length, num_output: int) -> Turn:
    num_tokens = length.draw(dice)
    text = f"Story {dice.below(10**6)}: {write_text(dice, workload.words.words_for(num_tokens))}"
    return Turn(max_tokens=num_output, messages=(_user(text),), num_prompt_tokens=num_tokens)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _prefix(workload: Workload, number: int) -> Message:
    dice = Dice(workload.seed, "prefix", number)
    text = write_text(dice, workload.words.words_for(workload.prefix_tokens, is_whole=False))
    return {"role": "system", "content": f"You are assistant {number}. Know this: {text}"}


def _fixed(workload: Workload, index: int, dice: Dice) -> Session:
    return Session(
        index=index, group="all", turns=(_plain(workload, dice, workload.input, workload.output.draw(dice)),)
    )


def _shared_prefix(workload: Workload, index: int, dice: Dice) -> Session:
    plain = _plain(workload, dice, workload.input, workload.output.draw(dice))
    messages = (_prefix(workload, abs(index) % workload.num_prefixes), *plain.messages)
    num_tokens = workload.prefix_tokens + plain.num_prompt_tokens
    return Session(
        index=index,
        group="all",
        turns=(Turn(max_tokens=plain.max_tokens, messages=messages, num_prompt_tokens=num_tokens),),
    )


def _agent(workload: Workload, index: int, dice: Dice) -> Session:
    turns: list[Turn] = []
    num_history = workload.prefix_tokens
    for number in range(workload.num_turns):
        num_new = workload.input.draw(dice)
        text = write_text(dice, workload.words.words_for(num_new, is_whole=False))
        if number:
            said: tuple[Message, ...] = (
                _user(f'Result of step {number}: {{"status": "ok", "text": "{text}"}}. Go on.'),
            )
        else:
            system = _prefix(workload, abs(index) % workload.num_prefixes)
            said = (system, _user(f"Task {dice.below(10**6)}: {text}. Work step by step."))
        num_history += num_new
        num_output = workload.output.draw(dice)
        turns.append(Turn(max_tokens=num_output, messages=said, num_prompt_tokens=num_history))
        num_history += num_output
    return Session(index=index, group="all", turns=tuple(turns))


def _mixed(workload: Workload, index: int, dice: Dice) -> Session:
    if index >= 0 and index % workload.long_every == workload.long_every - 1:
        return Session(
            index=index, group="long", turns=(_plain(workload, dice, workload.long_input, LONG_OUTPUT_TOKENS),)
        )
    return Session(
        index=index, group="short", turns=(_plain(workload, dice, workload.input, workload.output.draw(dice)),)
    )


def _constrained(workload: Workload, index: int, dice: Dice) -> Session:
    schema = workload.schemas[abs(index) % len(workload.schemas)]
    plain = _plain(workload, dice, workload.input, workload.output.draw(dice))
    answer_format = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    turn = Turn(
        max_tokens=plain.max_tokens,
        messages=plain.messages,
        extra={"response_format": answer_format},
        schema=schema,
        num_prompt_tokens=plain.num_prompt_tokens,
    )
    return Session(index=index, group="all", turns=(turn,))


_MAKERS: dict[Kind, Callable[[Workload, int, Dice], Session]] = {
    Kind.FIXED: _fixed,
    Kind.SHARED_PREFIX: _shared_prefix,
    Kind.AGENT: _agent,
    Kind.MIXED: _mixed,
    Kind.CONSTRAINED: _constrained,
}
