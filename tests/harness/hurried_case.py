"""Cases whose waits are shortened: a scripted engine needs no patience, and a test should not take any.

Only times shrink, all by one factor: pauses, delays, how long a client stays, how much later an answer may come. What
a script plays takes its time, unless that is shortened too.
"""

from dataclasses import replace
from typing import Any

from tidegate.conformance.ask import Ask, Leaving, Manner
from tidegate.conformance.case import Case, Expect

MUTANT_PATIENCE_S = 0.4
"""How long a mutant is waited for to do what it never does."""
MUTANT_TIMEOUT_S = 4.0
"""For one of its answers."""


def hurried(case: Case, factor: float, *, patience_s: float | None = None, with_scripts: bool = False) -> Case:
    """Returns the case with its times multiplied by `factor`; with `patience_s` nothing is polled for longer;
    `with_scripts`: those within scripts too. Without hurry, a factor of 1, the case itself.
    """
    if factor == 1:
        return case
    if with_scripts:
        case = replace(case, asks=tuple(replace(ask, script=_hurried_script(ask.script, factor)) for ask in case.asks))
    asks = tuple(_hurried_ask(ask, factor, patience_s) for ask in case.asks)
    return replace(case, asks=asks, expects=tuple(_hurried_expect(one, factor) for one in case.expects))


def _hurried_ask(ask: Ask, factor: float, patience_s: float | None) -> Ask:
    until = ask.until
    if until is not None:
        within_s = until.within_s if patience_s is None else min(until.within_s, patience_s)
        until = replace(until, every_s=until.every_s * factor / 2, within_s=within_s)
    manner = _hurried_manner(ask.manner, factor)
    if patience_s is not None:
        manner = replace(manner, timeout_s=min(manner.timeout_s or MUTANT_TIMEOUT_S, MUTANT_TIMEOUT_S))
    return replace(ask, manner=manner, script_manner=None, delay_s=ask.delay_s * factor, until=until)


def _hurried_script(script: Any, factor: float) -> Any:
    if not isinstance(script, dict) or "delays_s" not in script:
        return script
    return script | {"delays_s": [delay_s * factor for delay_s in script["delays_s"]]}


def _hurried_manner(manner: Manner, factor: float) -> Manner:
    times: dict[str, Any] = {
        name: getattr(manner, name) * factor
        for name in ("leave_after_s", "pause_s", "send_pause_s", "read_pause_s", "timeout_s")
        if getattr(manner, name) is not None
    }
    if manner.leaving is Leaving.AFTER_OTHERS:  # it is told when to leave
        times["leave_after_s"] = manner.leave_after_s
    return replace(manner, **times)


def _hurried_expect(expectation: Expect, factor: float) -> Expect:
    args = {name: value * factor if name == "spare_s" else value for name, value in expectation.args.items()}
    return replace(expectation, args=args)
