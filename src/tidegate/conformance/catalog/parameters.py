"""Ranges of parameters: what stands on the edge is taken, what lies beyond is refused."""

from dataclasses import dataclass
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.errors import is_refused
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

FAULTY = (400, 422)
Values = dict[str, dict[str, Any]]
"""Name of an ask to the fields that it sends."""


def asks_of(values: Values, path: str = "/chat/completions") -> tuple[Ask, ...]:
    """Returns an ask for each set of fields: a short greedy request with these fields in it."""
    body = chat_body if path == "/chat/completions" else completion_body
    return tuple(Ask(name=name, path=path, body=body(**{"max_tokens": 1, **fields})) for name, fields in values.items())


@dataclass(frozen=True, slots=True)
class _Range:
    """A parameter's range. `edges`: values that are in it; `beyond`: values that are not. `what_if`: what happens to a
    client whose value beyond is not refused.
    """

    name: str
    says: str
    edges: Values
    beyond: Values
    what_if: str
    needs: tuple[Capability, ...] = (Capability.CHAT,)
    path: str = "/chat/completions"
    severity: Severity = Severity.NUISANCE


_BIASED = (Capability.CHAT, Capability.LOGIT_BIAS)
_FIVE = ["qqa", "qqb", "qqc", "qqd", "qqe"]

_RANGES = (
    _Range(
        "temperature",
        "temperature, from 0 to 2",
        {"least": {"temperature": 0}, "most": {"temperature": 2}},
        {"below": {"temperature": -0.1}, "above": {"temperature": 2.01}},
        "A mistake in units samples noise, and nobody is told.",
    ),
    _Range(
        "top_p",
        "top_p, up to 1",
        {"small": {"top_p": 0.01}, "most": {"top_p": 1}},
        {"below": {"top_p": -0.1}, "above": {"top_p": 1.01}},
        "A percentage in place of a fraction goes unseen.",
    ),
    _Range(
        "penalties",
        "presence_penalty and frequency_penalty, from -2 to 2",
        {
            "least": {"presence_penalty": -2, "frequency_penalty": -2},
            "most": {"presence_penalty": 2, "frequency_penalty": 2},
        },
        {
            "presence_below": {"presence_penalty": -2.01},
            "presence_above": {"presence_penalty": 2.01},
            "frequency_below": {"frequency_penalty": -2.01},
            "frequency_above": {"frequency_penalty": 2.01},
        },
        "Text falls apart, and the request looks right.",
    ),
    _Range(
        "n",
        "n, from 1",
        {"least": {"n": 1}, "two": {"n": 2, "temperature": 1}},
        {"none": {"n": 0}, "negative": {"n": -1}, "above": {"n": 129}},
        "None, or a hundred answers, are made and billed.",
        (Capability.CHAT, Capability.CHOICES),
        severity=Severity.WRONG_BILL,
    ),
    _Range(
        "stop",
        "stop, at most 4 strings",
        {"text": {"stop": "qqa"}, "one": {"stop": _FIVE[:1]}, "most": {"stop": _FIVE[:4]}},
        {"above": {"stop": _FIVE}},
        "The fifth string is dropped, and the answer runs on past it.",
    ),
    _Range(
        "top_logprobs",
        "top_logprobs, from 0 to 20",
        {"least": {"logprobs": True, "top_logprobs": 0}, "most": {"logprobs": True, "top_logprobs": 20}},
        {"below": {"logprobs": True, "top_logprobs": -1}, "above": {"logprobs": True, "top_logprobs": 21}},
        "Fewer come than were asked for, and nobody is told.",
        (Capability.CHAT, Capability.LOGPROBS),
    ),
    _Range(
        "logit_bias",
        "values of logit_bias, from -100 to 100",
        {"none": {"logit_bias": {}}, "least": {"logit_bias": {"50": -100}}, "most": {"logit_bias": {"50": 100}}},
        {"below": {"logit_bias": {"50": -101}}, "above": {"logit_bias": {"50": 101}}},
        "A value of another scale bans or forces a token by surprise.",
        _BIASED,
    ),
    _Range(
        "seed",
        "seed, a signed number of 64 bits",
        {"zero": {"seed": 0}, "least": {"seed": -(2**63)}, "most": {"seed": 2**63 - 1}},
        {"above": {"seed": 2**64}, "far_above": {"seed": 10**30}},
        "A seed that is cut off gives two seeds one answer.",
        (Capability.CHAT, Capability.SEED),
    ),
    _Range(
        "completion_logprobs",
        "logprobs of completions, from 0 to 5",
        {"least": {"logprobs": 0}, "most": {"logprobs": 5}},
        {"below": {"logprobs": -1}, "far_above": {"logprobs": 100_000}},
        "A number out of range makes answers of any size.",
        (Capability.COMPLETIONS, Capability.COMPLETION_LOGPROBS),
        "/completions",
    ),
)


def _edges(row: _Range) -> Case:
    return Case(
        id=f"parameters.{row.name}_edges",
        title=f"Values on the edge are taken: {row.says}",
        why="A range that excludes its ends refuses what the documentation allows.",
        clauses=("openai:parameters.range",),
        severity=Severity.BREAKS_CLIENTS,
        needs=row.needs,
        asks=asks_of(row.edges, row.path),
        expects=tuple(expect(has_status, name, allowed=(200,)) for name in row.edges),
    )


def _beyond(row: _Range) -> Case:
    return Case(
        id=f"parameters.{row.name}_beyond",
        title=f"Values out of range are refused: {row.says}",
        why=row.what_if,
        clauses=("openai:parameters.range", "openai:errors.blame"),
        severity=row.severity,
        needs=row.needs,
        asks=asks_of(row.beyond, row.path),
        expects=tuple(expect(is_refused, name, allowed=FAULTY) for name in row.beyond),
    )


CASES: tuple[Case, ...] = tuple(case for row in _RANGES for case in (_edges(row), _beyond(row)))
