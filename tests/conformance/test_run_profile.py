"""Profiles: which cases are asked, how heavy they are, and which failures are known."""

from dataclasses import replace

import pytest

from harness.exchanges import answered
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity
from tidegate.conformance.catalog import CASES as CATALOGUE
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.running.conclusion import ExitStatus, conclude
from tidegate.conformance.running.run_plan import plan_run
from tidegate.conformance.running.run_profile import BUILT_IN, BY_SERVER, ProfileError, find_case, read_profile
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.running.shipped_profiles import SHIPPED, read_shipped
from tidegate.conformance.verdict import Fault, Outcome, Verdict
from tidegate.conformance.wire.target import Target, TargetError, read_base_url


def case(case_id: str, profile: Profile = Profile.OPENAI) -> Case:
    return Case(
        id=case_id,
        title="t",
        why="w",
        clauses=(),
        severity=Severity.NUISANCE,
        profile=profile,
        asks=(Ask(),),
        expects=(),
    )


CASES = (case("chat.object"), case("chat.usage"), case("stream.order"), case("stream.fence", Profile.TIDEGATE))

CHOICES: dict[str, tuple[str, bool, list[str]]] = {
    "nothing said, a peer": ("", False, ["chat.object", "chat.usage", "stream.order"]),
    "nothing said, ours": ("", True, ["chat.object", "chat.usage", "stream.order", "stream.fence"]),
    "openai": ('base = "openai"', True, ["chat.object", "chat.usage", "stream.order"]),
    "tidegate": ('base = "tidegate"', False, ["chat.object", "chat.usage", "stream.order", "stream.fence"]),
    "only": ('only = ["chat.*", "stream.fence"]', True, ["chat.object", "chat.usage", "stream.fence"]),
    "skip": ('skip = ["*.o*"]', False, ["chat.usage"]),
    "both": ('only = ["stream.*"]\nskip = ["stream.order"]', True, ["stream.fence"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_profile_chooses_cases(name: str) -> None:
    text, has_contract, expected = CHOICES[name]
    chosen = read_profile("p.toml", text, CASES).choose(CASES, has_contract=has_contract)
    assert [one.id for one in chosen] == expected


def test_built_in_profiles_choose_by_who_promised() -> None:
    assert len(BUILT_IN["openai"].choose(CASES, has_contract=True)) == 3
    assert len(BUILT_IN["tidegate"].choose(CASES, has_contract=False)) == 4
    assert len(BY_SERVER.choose(CASES, has_contract=False)) == 3


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_asks_something_of_every_area_within_bounds(name: str) -> None:
    chosen = read_profile(name, read_shipped(name), CATALOGUE).choose(CATALOGUE, has_contract=True)
    assert {one.area for one in chosen} == {one.area for one in CATALOGUE}
    plan, whole = plan_run(chosen), plan_run(CATALOGUE)
    assert plan.num_cases < whole.num_cases * 0.65
    assert plan.num_output_tokens < whole.num_output_tokens * 0.25


def test_severities_can_be_set() -> None:
    profile = read_profile("p.toml", '[severity]\n"chat.usage" = "wrong bill"', CASES)
    chosen = {one.id: one.severity for one in profile.choose(CASES, has_contract=False)}
    assert chosen["chat.usage"] is Severity.WRONG_BILL
    assert chosen["chat.object"] is Severity.NUISANCE


FAULTS: dict[str, tuple[str, str]] = {
    "no TOML": ("only = [", "p.toml: "),
    "an unknown key": ("skipp = []", "'skipp' is no key of a profile; there are base, only, skip, severity, expected"),
    "an unknown base": ('base = "vllm"', "base is 'vllm'; it can be openai or tidegate"),
    "a base that is a number": ("base = 1", "base is 1"),
    "patterns that are text": ('only = "chat.*"', "only must be a list of patterns"),
    "a pattern without a case": (
        'skip = ["chat.objects"]',
        "'chat.objects' matches no case; did you mean chat.object?",
    ),
    "a severity of no case": ('[severity]\n"chat.usages" = "nuisance"', "did you mean chat.usage"),
    "no severity": ('[severity]\n"chat.usage" = "bad"', "is 'bad'; it can be breaks clients, wrong data"),
    "a failure of no case": ('[expected]\n"x" = "because"', "'x' is no case; `tidegate conform --list`"),
    "a failure without a reason": ('[expected]\n"chat.usage" = " "', "must say why"),
    "a failure that is true": ('[expected]\n"chat.usage" = true', "must say why"),
    "an id without quotes": ('[expected]\nchat.usage = "because"', 'put the id in quotes: "chat.usage"'),
    "a table that is a list": ("expected = []", "expected must be a table"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_profile_with_a_mistake_is_refused_in_words(name: str) -> None:
    text, words = FAULTS[name]
    with pytest.raises(ProfileError) as caught:
        read_profile("p.toml", text, CASES)
    assert words in str(caught.value)


def report(*outcomes: Outcome, **fields: object) -> RunReport:
    results = tuple(
        Result(CASES[index], Verdict(CASES[index].id, outcome, (Fault("wrong"),)), ({"it": (answered(200, {}),)},), 0.1)
        for index, outcome in enumerate(outcomes)
    )
    made = RunReport(Target(base_url="http://server/v1"), Probed("m", frozenset(), {}, False, False), results, 1.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_known_failures_are_told_and_do_not_fail_the_run() -> None:
    profile = read_profile("p.toml", '[expected]\n"chat.object" = "known"\n"chat.usage" = "known too"', CASES)
    before = report(Outcome.FAIL, Outcome.PASS, Outcome.PASS)
    after = profile.with_known_failures(before)
    assert conclude(before).status is ExitStatus.FAILURES
    assert conclude(after).status is ExitStatus.ALL_PASSED
    assert after.results[0].verdict.outcome is Outcome.INCONCLUSIVE
    assert after.results[0].verdict.reason == "known failure: known"
    assert after.results[0].verdict.faults == (Fault("wrong"),)
    assert after.results[1:] == before.results[1:]
    assert profile.cured(after) == ("chat.usage",)


def test_an_unknown_case_is_named_with_its_neighbours() -> None:
    assert find_case("chat.object", CASES) is CASES[0]
    with pytest.raises(ProfileError, match=r"did you mean stream\.order"):
        find_case("stream.ordre", CASES)


BROKEN = Result(CASES[0], Verdict("chat.object", Outcome.INCONCLUSIVE, is_suite_fault=True), (), 0.0)
CONCLUSIONS: dict[str, tuple[RunReport, ExitStatus, str]] = {
    "all passed": (report(Outcome.PASS, Outcome.PASS), ExitStatus.ALL_PASSED, ""),
    "some told nothing": (report(Outcome.PASS, Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE), ExitStatus.ALL_PASSED, ""),
    "a failure": (report(Outcome.PASS, Outcome.FAIL), ExitStatus.FAILURES, ""),
    "nothing told": (report(Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE), ExitStatus.COULD_NOT_RUN, "No case told"),
    "nothing run": (report(), ExitStatus.COULD_NOT_RUN, "No case told"),
    "stopped": (
        report(Outcome.PASS, stopped="it was interrupted", not_run=("a", "b")),
        ExitStatus.COULD_NOT_RUN,
        "The run ended early: it was interrupted; 2 cases were not run.",
    ),
    "stopped with a failure": (report(Outcome.FAIL, stopped="gone"), ExitStatus.FAILURES, "ended early: gone"),
    "the suite failed": (
        replace(report(Outcome.PASS), results=(BROKEN, *report(Outcome.PASS).results)),
        ExitStatus.COULD_NOT_RUN,
        "The suite itself failed in chat.object",
    ),
    "not all recorded": (report(Outcome.PASS, not_run=("a",)), ExitStatus.ALL_PASSED, "1 cases are not"),
}


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_a_run_comes_to_an_exit_status(name: str) -> None:
    made, status, words = CONCLUSIONS[name]
    conclusion = conclude(made)
    assert conclusion.status is status
    assert words in " ".join(conclusion.says)


def test_a_plan_counts_copies_tries_and_choices() -> None:
    body = {"messages": [], "max_tokens": 10, "n": 3}
    one = replace(case("chat.object"), asks=(Ask(body=body),))
    many = replace(case("chat.usage"), asks=(Ask(body=body, copies=4),), tries=3)
    hostile = replace(case("chat.big"), asks=(Ask(body={"max_tokens": 10**12}), Ask(name="no", raw=b"{")))
    nothing = plan_run(())
    assert plan_run((one,)).num_requests - nothing.num_requests == 1
    assert plan_run((one,)).num_output_tokens - nothing.num_output_tokens == 30
    assert plan_run((many,)).num_requests - nothing.num_requests == 12
    assert plan_run((many,)).num_output_tokens - nothing.num_output_tokens == 360
    assert plan_run((hostile,)).num_output_tokens - nothing.num_output_tokens == 64
    assert "2 cases; at most " in plan_run((one, many)).describe()


ADDRESSES: dict[str, str] = {
    "http://127.0.0.1:8000": "http://127.0.0.1:8000/v1",
    "http://127.0.0.1:8000/": "http://127.0.0.1:8000/v1",
    "localhost:8000/v1/": "http://localhost:8000/v1",
    "https://api.example.com/openai/v1": "https://api.example.com/openai/v1",
    "http://[::1]:8000": "http://[::1]:8000/v1",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_completed(address: str) -> None:
    assert read_base_url(address) == ADDRESSES[address]


NO_ADDRESSES = [
    "",
    "ftp://a",
    "http://",
    "http://a:b/v1",
    "http://a:99999",
    "http://a/v1?x=1",
    "http://u:p@a/v1",
    "http://[::1",
]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(TargetError):
        read_base_url(address)
