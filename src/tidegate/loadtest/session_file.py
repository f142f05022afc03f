"""Sessions from a JSONL file: one JSON object a line, each the body of a request. Pure.

`{"messages": [...]}` or `{"prompt": "..."}` or `{"turns": [{"messages": [...]}, ...]}`, with `max_tokens` (else the
order's) and `group` if wanted. All other members go into the request as they stand. Empty lines are skipped.
"""

import json
from typing import Any

from tidegate.loadtest.session import Json, Message, Session, Turn

MAX_FILE_BYTES = 256 * 1024 * 1024
CHARACTERS_PER_TOKEN = 4
"""A rough guess for the budget; servers tell the true number."""
_OURS = {"messages", "prompt", "max_tokens", "max_completion_tokens", "group", "turns", "model", "stream"}


class SessionFileError(Exception):
    """The file holds no load; the message names the line and what is wrong with it."""


def read_sessions(text: str, max_tokens: int) -> tuple[Session, ...]:
    """Returns the file's sessions in their order. Raises SessionFileError."""
    sessions: list[Session] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            sessions.append(_session(line, number, len(sessions), max_tokens))
    if not sessions:
        raise SessionFileError("the file holds no line with a request")
    return tuple(sessions)


def _session(line: str, number: int, index: int, max_tokens: int) -> Session:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"line {number}: not JSON: {error}") from None
    if not isinstance(body, dict):
        raise SessionFileError(f"line {number}: not a JSON object")
    group = body.get("group", "all")
    if not isinstance(group, str) or not group:
        raise SessionFileError(f"line {number}: group is no text")
    given = body.get("turns", [body])
    if not isinstance(given, list) or not given or not all(isinstance(turn, dict) for turn in given):
        raise SessionFileError(f"line {number}: turns is no list of objects")
    turns: list[Turn] = []
    for part in given:
        history = turns[-1].num_prompt_tokens + turns[-1].max_tokens if turns else 0
        turns.append(_turn(body | part, number, max_tokens, history))
    return Session(index=index, group=group, turns=tuple(turns))


def _turn(body: Json, number: int, max_tokens: int, num_history: int) -> Turn:
    messages, prompt = body.get("messages"), body.get("prompt")
    if (messages is None) == (prompt is None):
        raise SessionFileError(f"line {number}: needs either messages or prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise SessionFileError(f"line {number}: prompt is no text")
    if messages is not None and not _are_messages(messages):
        raise SessionFileError(f"line {number}: messages is no list of objects with a role")
    wanted: Any = body.get("max_completion_tokens", body.get("max_tokens", max_tokens))
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        raise SessionFileError(f"line {number}: max_tokens is no positive whole number")
    said: tuple[Message, ...] = tuple(messages or ())
    num_characters = len(prompt) if prompt is not None else len(json.dumps(said))
    return Turn(
        max_tokens=wanted,
        messages=said,
        prompt=prompt,
        extra={name: value for name, value in body.items() if name not in _OURS},
        schema=_schema_of(body),
        num_prompt_tokens=num_history + max(1, num_characters // CHARACTERS_PER_TOKEN),
    )


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "role" in each for each in value)


def _schema_of(body: Json) -> Json | None:
    found: Any = body
    for name in ("response_format", "json_schema", "schema"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
