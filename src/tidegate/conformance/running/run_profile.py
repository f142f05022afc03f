"""RunProfile: which cases a run asks, how heavy each is, and which are known to fail. Built in, or TOML. Pure.

```toml
base = "openai"                       # or "tidegate": what is beyond this profile is not asked
only = ["chat.*", "stream.*"]         # patterns of ids; absent: all
skip = ["stream.usage_is_null"]

[severity]                            # how heavy a case is for you
"headers.request_id" = "wrong data"

[expected]                            # known failures: told, and no reason to fail the run
"models.by_id" = "the server has no such route yet"
```
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from tidegate.conformance.case import Case, Profile, Severity
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.verdict import Outcome

KNOWN_FAILURE = "known failure"
_KEYS = ("base", "only", "skip", "severity", "expected")


class ProfileError(Exception):
    """The profile cannot be used; the message names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProfile:
    """`base` None: as the server shows itself. `severity` and `expected`: by id of the case; `expected` says why."""

    name: str
    base: Profile | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)

    def choose(self, cases: Sequence[Case], *, has_contract: bool) -> tuple[Case, ...]:
        """Returns the cases that are asked, as heavy as the profile has them."""
        base = self.base or (Profile.TIDEGATE if has_contract else Profile.OPENAI)
        return tuple(
            replace(case, severity=self.severity.get(case.id, case.severity))
            for case in cases
            if (base is Profile.TIDEGATE or case.profile is Profile.OPENAI)
            and (not self.only or _matches(case, self.only))
            and not _matches(case, self.skip)
        )

    def with_known_failures(self, report: RunReport) -> RunReport:
        """Returns the report in which known failures are `inconclusive`, their faults kept, and the reason told."""
        return replace(report, results=tuple(map(self.excuse, report.results)))

    def excuse(self, result: Result) -> Result:
        """Returns the result, known failures excused."""
        why = self.expected.get(result.case.id)
        if why is None or result.verdict.outcome is not Outcome.FAIL:
            return result
        return replace(
            result, verdict=replace(result.verdict, outcome=Outcome.INCONCLUSIVE, reason=f"{KNOWN_FAILURE}: {why}")
        )

    def cured(self, report: RunReport) -> tuple[str, ...]:
        """Returns the known failures that pass: they need not be known any more."""
        return tuple(
            result.case.id
            for result in report.results
            if result.case.id in self.expected and result.verdict.outcome is Outcome.PASS
        )


def _matches(case: Case, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(case.id, pattern) for pattern in patterns)


BUILT_IN: Mapping[str, RunProfile] = {
    profile.value: RunProfile(name=profile.value, base=profile) for profile in Profile
}
BY_SERVER = RunProfile(name="as the server shows itself")


def read_profile(name: str, text: str, cases: Sequence[Case]) -> RunProfile:
    """Returns the profile in a TOML text. Raises ProfileError for what it does not know: keys, cases, patterns that
    match no case.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{name}: {error}") from None
    for key in table:
        if key not in _KEYS:
            raise ProfileError(f"{name}: {key!r} is no key of a profile; there are {', '.join(_KEYS)}")
    ids = [case.id for case in cases]
    profile = RunProfile(
        name=name,
        base=_read_base(name, table.get("base")),
        only=_read_patterns(name, "only", table),
        skip=_read_patterns(name, "skip", table),
        severity={
            case_id: _read_severity(f"{name}: severity of {case_id}", value)
            for case_id, value in _read_table(name, "severity", table, ids).items()
        },
        expected={
            case_id: _read_reason(f"{name}: expected failure {case_id}", value)
            for case_id, value in _read_table(name, "expected", table, ids).items()
        },
    )
    check_patterns(f"{name}: only", profile.only, cases)
    check_patterns(f"{name}: skip", profile.skip, cases)
    return profile


def check_patterns(where: str, patterns: Iterable[str], cases: Sequence[Case]) -> None:
    """Raises ProfileError for a pattern that matches no case."""
    for pattern in patterns:
        if not any(fnmatchcase(case.id, pattern) for case in cases):
            raise ProfileError(f"{where}: {pattern!r} matches no case{_suggest(pattern, [case.id for case in cases])}")


def choose_by_patterns(cases: Sequence[Case], only: Sequence[str], skip: Sequence[str]) -> list[Case]:
    """Returns the cases whose ids match one of `only`, or any where it is empty, and none of `skip`. Raises
    ProfileError for a pattern that matches no case, and where none is left.
    """
    check_patterns("--only", only, cases)
    check_patterns("--skip", skip, cases)
    chosen = [case for case in cases if (not only or _matches(case, only)) and not _matches(case, skip)]
    if not chosen:
        raise ProfileError("no case is left by --only and --skip; `tidegate conform --list` names all")
    return chosen


def find_case(case_id: str, cases: Sequence[Case]) -> Case:
    """Returns the case with this id. Raises ProfileError."""
    for case in cases:
        if case.id == case_id:
            return case
    raise ProfileError(f"{case_id!r} is no case{_suggest(case_id, [case.id for case in cases])}")


def _suggest(text: str, ids: Sequence[str]) -> str:
    near = get_close_matches(text, ids, n=3)
    return f"; did you mean {' or '.join(near)}?" if near else "; `tidegate conform --list` names all"


def _read_base(name: str, value: Any) -> Profile | None:
    if value is None:
        return None
    known = [profile.value for profile in Profile]
    if value not in known:
        raise ProfileError(f"{name}: base is {value!r}; it can be {' or '.join(known)}")
    return Profile(value)


def _read_patterns(name: str, key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(pattern, str) for pattern in value):
        raise ProfileError(f'{name}: {key} must be a list of patterns, like ["stream.*"]')
    return tuple(value)


def _read_table(name: str, key: str, table: Mapping[str, Any], ids: Sequence[str]) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ProfileError(f"{name}: {key} must be a table, with ids of cases in quotes")
    for case_id, part in value.items():
        if isinstance(part, dict):
            raise ProfileError(
                f'{name}: {key}.{case_id}: put the id in quotes: "{case_id}.{next(iter(part), "")}" = ...'
            )
        if case_id not in ids:
            raise ProfileError(f"{name}: {key}: {case_id!r} is no case{_suggest(case_id, ids)}")
    return value


def _read_severity(where: str, value: Any) -> Severity:
    known = [severity.value for severity in Severity]
    if value not in known:
        raise ProfileError(f"{where} is {value!r}; it can be {', '.join(known)}")
    return Severity(value)


def _read_reason(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f"{where} must say why, in words")
    return value.strip()
