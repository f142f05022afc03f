"""Random requests for the scripted engine, and what each must be answered, computed in the plainest way."""

import random
from dataclasses import dataclass, field
from typing import Any

from harness.faults import Route, ask, hex_pieces


@dataclass(frozen=True, slots=True)
class Expected:
    """One choice's whole text. `reason` is None when the script makes it fail before its end."""

    text: str
    reason: str | None
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One request. `leave_after`: how many chunks are read before the client goes, None when it stays."""

    name: str
    route: Route
    body: dict[str, Any]
    is_stream: bool
    choices: list[Expected] = field(default_factory=list)
    is_refused: bool = False
    leave_after: int | None = None
    is_reset: bool = False

    @property
    def must_fail(self) -> bool:
        return any(choice.reason is None for choice in self.choices)


def make_plan(rng: random.Random, number: int) -> Plan:
    name = f"m{number:05}"
    route = rng.choice(list(Route))
    is_stream = rng.random() < 0.6
    if rng.random() < 0.04:
        return Plan(name, route, ask(route, stream=is_stream, temperature=-1), is_stream, is_refused=True)
    parts = [_part(rng, f"{name}.{part}") for part in range(rng.choice([1, 1, 1, 2, 3]))]
    limits = {"max_tokens": rng.choice([1, 3, 10, 900]), "stop": rng.choice([[], [f":{rng.randrange(30)}]"]])}
    if not limits["stop"]:
        del limits["stop"]
    script = {
        "choices": parts,
        "queue_delay_s": rng.choice([0.0, 0.0, 0.02]),
        "prefill_delay_s": rng.choice([0.0, 0.0, 0.02]),
    }
    expected = [_expect(part, **limits) for part in parts]
    fields: dict[str, Any] = {**limits, "n": len(parts), "stream": is_stream}
    if is_stream:
        fields["stream_options"] = {"include_usage": True}
    if route is Route.COMPLETIONS:
        fields["prompt"] = ["p" * rng.randrange(1, 60) for _ in range(rng.choice([1, 1, 2]))]
        expected = expected * len(fields["prompt"])
    leaves = rng.random() < 0.3
    return Plan(
        name,
        route,
        ask(route, script, **fields),
        is_stream,
        choices=expected,
        leave_after=rng.randrange(5) if leaves else None,
        is_reset=rng.random() < 0.5,
    )


def _part(rng: random.Random, marker: str) -> dict[str, Any]:
    num_pieces = rng.randrange(1, 25)
    part: dict[str, Any] = {
        "pieces": hex_pieces(*(f"[{marker}:{index}]" for index in range(num_pieces))),
        "finish": rng.choices(["eos", "length", "error", "abort"], [12, 4, 1, 1])[0],
        "repeat": rng.choice([1, 1, 4]),
        "delays_s": rng.choice([[0.0], [0.0], [0.001], [0.0, 0.01], [0.02, 0.0, 0.0, 0.0]]),
        "step_tokens": rng.choice([[], [], [3, 1, 7], [40]]),
    }
    if rng.random() < 0.06:
        part["error_after"] = rng.randrange(num_pieces + 1)
    return part


def _expect(part: dict[str, Any], *, max_tokens: int, stop: list[str] | None = None) -> Expected:
    """Token by token: a failure, then a stop string, then the budget, then the script's own end."""
    pieces = [bytes.fromhex(piece).decode() for piece in part["pieces"]] * part["repeat"]
    text = ""
    for num_tokens, piece in enumerate(pieces):
        if part.get("error_after") == num_tokens:
            return Expected(text, None, num_tokens)
        text += piece
        for string in stop or []:
            if string in text:
                return Expected(text[: text.index(string)], "stop", num_tokens + 1)
        if num_tokens + 1 == max_tokens:
            return Expected(text, "length", max_tokens)
    reason = {"eos": "stop", "length": "length"}.get(part["finish"])
    if part.get("error_after") == len(pieces):
        reason = None
    return Expected(text, reason, len(pieces))
