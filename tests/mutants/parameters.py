"""What breaks the reading of parameters."""

import json
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsErrors, EditsRequest, EditsValue, Heard, Ignores, Mutant, Said
from mutants.errors import any_success
from mutants.routes import with_status
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case
from tidegate.conformance.catalog import parameter_effects, parameter_kinds, parameter_rules, parameters

PLAIN: dict[str, Any] = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "Name three colours."}],
    "prompt": "Name three colours.",
    "temperature": 0,
    "max_tokens": 1,
}
REFUSAL = b'{"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "invalid_value"}}'


def _odd_fields(ask: Ask) -> dict[str, Any]:
    """Returns what a request says besides what every one says, as it comes over the wire."""
    body = json.loads(json.dumps(ask.body))
    return {name: value for name, value in body.items() if name != "model" and _differs(PLAIN.get(name, ...), value)}


def _differs(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or bool(one != other)


def _holds(heard: Heard, fields: dict[str, Any]) -> bool:
    value = heard.json
    return isinstance(value, dict) and all(
        name in value and not _differs(value[name], part) for name, part in fields.items()
    )


class Lenient(Mutant):
    """Drops the fields of one request of a case, and goes on with what is usual."""

    def __init__(self, ask: Ask) -> None:
        self.says = f"drops what it does not like of {ask.name}"
        self._fields = _odd_fields(ask)
        assert self._fields, ask

    def hear(self, heard: Heard) -> Heard | Said:
        if not _holds(heard, self._fields):
            return heard
        usual = {name: PLAIN[name] for name in self._fields if name in PLAIN}
        return heard.with_json({k: v for k, v in heard.json.items() if k not in self._fields} | usual)


class Strict(Mutant):
    """Refuses one request of a case, as by a bound that is off by one."""

    def __init__(self, ask: Ask) -> None:
        self.says = f"refuses {ask.name}"
        self._fields = _odd_fields(ask)

    def hear(self, heard: Heard) -> Heard | Said:
        return Said(400, REFUSAL) if _holds(heard, self._fields) else heard


def _ends(case: Case) -> list[Ask]:
    return [case.asks[0], case.asks[-1]] if len(case.asks) > 1 else [case.asks[0]]


def _of(cases: tuple[Case, ...], kind: type[Lenient] | type[Strict], ends: str = "") -> Mutants:
    return {case.id: tuple(kind(ask) for ask in _ends(case)) for case in cases if case.id.endswith(ends)}


def _takes_word(word: bytes) -> Mutant:
    return Answers(
        f"takes {word.decode()} for a number", lambda heard: any_success(heard) if word in heard.body else None
    )


def _without_param() -> Mutant:
    return EditsErrors("names no field", lambda value: {"error": value["error"] | {"param": None}})


_RULES = {case.id: case for case in parameter_rules.CASES}
_TOLD = [case_id for case_id in _RULES if case_id.startswith("parameters.told_")]

MUTANTS: Mutants = {
    **_of(parameters.CASES, Strict, "_edges"),
    **_of(parameters.CASES, Lenient, "_beyond"),
    **_of(tuple(case for case in parameter_kinds.CASES if case.id != "parameters.no_numbers"), Lenient),
    **_of(parameter_effects.TAKEN, Strict),
    "parameters.no_numbers": tuple(_takes_word(word) for word in (b"NaN", b"Infinity", b"1e999", b"99999999")),
    "parameters.max_tokens": (Ignores(("max_tokens",)),),
    "parameters.max_completion_tokens": (Ignores(("max_completion_tokens",)),),
    "parameters.completion_max_tokens": (
        EditsRequest("makes twice as many", lambda value: value | {"max_tokens": 2 * value.get("max_tokens", 8)}),
    ),
    "parameters.audio": (Ignores(("modalities", "audio")),),
    "parameters.store": (Ignores(("store",)),),
    **{
        case_id: (*_of((_RULES[case_id],), Lenient)[case_id], _without_param(), with_status("says 422", 400, 422))
        for case_id in (*_TOLD, "parameters.template")
    },
    "parameters.hosted": (
        *(Lenient(ask) for ask in _RULES["parameters.hosted"].asks),
        with_status("says 400", 422, 400),
    ),
    "parameters.removed": (
        *(Lenient(ask) for ask in _RULES["parameters.removed"].asks),
        EditsErrors("does not say what works", lambda value: {"error": value["error"] | {"message": "unknown field"}}),
    ),
    "parameters.completion_rules": (
        Ignores(("best_of",)),
        Ignores(("logprobs",)),
        Strict(_RULES["parameters.completion_rules"].asks[2]),
    ),
    "parameters.both_bounds": (
        Ignores(("max_completion_tokens",)),
        EditsValue("counts no tokens", lambda value: value | {"usage": {"completion_tokens": 1}}),
    ),
    **_of((_RULES["parameters.own_edges"],), Strict),
    "parameters.no_effect": (
        *_of((_RULES["parameters.no_effect"],), Strict)["parameters.no_effect"],
        EditsValue("tells no tier", lambda value: {k: v for k, v in value.items() if k != "service_tier"}),
    ),
}
