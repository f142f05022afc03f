"""How cases are run: waves, copies, repeats, turns, bounds, and a server that goes away."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.exchanges import http
from harness.hostile_server import HostileServer, Plays, says
from tidegate.conformance.ask import Ask, Derived, Leaving, Manner, Until
from tidegate.conformance.case import Case, Severity, Turn, expect, expect_over
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.running.runner import RunBounds, Runner
from tidegate.conformance.verdict import CannotTell, Fault, Outcome
from tidegate.conformance.wire.exchange import Ending, Exchange
from tidegate.conformance.wire.json_text import at
from tidegate.conformance.wire.target import Target

PROBED = Probed("tide-1", frozenset(), {}, False, False)
IS_OK = expect(has_status, allowed=(200,))
OK = says(http(200, b"{}"))
QUICK = RunBounds(patience_s=0.0)


def case(name: str, *asks: Ask, expects: tuple[Any, ...] = (IS_OK,), **fields: Any) -> Case:
    return Case(
        id=f"some.{name}",
        title="t",
        why="w",
        clauses=(),
        severity=Severity.NUISANCE,
        asks=asks or (Ask(),),
        expects=expects,
        **fields,
    )


def run(server: HostileServer, *cases: Case, seed: int = 0, bounds: RunBounds = QUICK, **options: Any) -> RunReport:
    target = Target(base_url=server.url, seed=seed, timeout_s=options.pop("timeout_s", 20.0))
    return asyncio.run(Runner(target, bounds=bounds, **options).run(cases, PROBED))


def outcomes(report: RunReport) -> dict[str, Outcome]:
    return {result.case.id.partition(".")[2]: result.verdict.outcome for result in report.results}


def is_at_least(exchange: Exchange, *, number: int) -> Iterator[Fault]:
    found = at(exchange.json, "number")
    if found < number:
        yield Fault(f"{found} < {number}")


def counting() -> Plays:
    """Answers with the number of requests so far."""
    lock = threading.Lock()
    number = 0

    def play(client: socket.socket, head: bytes) -> None:
        nonlocal number
        with lock:
            number += 1
            client.sendall(http(200, json.dumps({"number": number}).encode()))

    return play


def number_of(exchange: Exchange) -> int:
    return int(exchange.json["number"])


def test_waves_come_one_after_the_other_and_later_ones_know_of_earlier_ones() -> None:
    asks = (
        Ask(name="late", wave=2, body={"after": Derived(number_of, ("early",))}),
        Ask(name="early", copies=3),
        Ask(name="between", wave=1, copies=2),
    )
    with HostileServer(counting()) as server:
        result = run(server, case("waves", *asks, expects=(expect(has_status, "late", allowed=(200,)),))).results[0]
    evidence = result.runs[0]
    numbers = {name: [number_of(one) for one in exchanges] for name, exchanges in evidence.items()}
    assert sorted(numbers["early"]) == [1, 2, 3]
    assert sorted(numbers["between"]) == [4, 5]
    assert numbers["late"] == [6]
    assert evidence["late"][0].request_json == {"after": numbers["early"][0]}
    assert [one.copy for one in evidence["early"]] == [0, 1, 2]
    assert evidence["late"][0].sent_at_s > evidence["early"][0].sent_at_s >= 0


def silent_at_kept() -> Plays:
    """Never answers below `/kept`, until its client goes away; counts elsewhere."""
    count = counting()

    def play(client: socket.socket, head: bytes) -> None:
        if b"/kept " in head:
            client.recv(1)
        else:
            count(client, head)

    return play


def test_a_lasting_ask_leaves_when_the_others_of_its_waves_are_answered() -> None:
    kept = Manner(leaving=Leaving.AFTER_OTHERS, leave_after_s=20)
    asks = (
        Ask(name="kept", path="/kept", manner=kept, last_wave=1),
        Ask(name="first"),
        Ask(name="second", wave=1),
        Ask(name="brief", path="/kept", wave=1, manner=kept, copies=2),
        Ask(name="third", wave=2),
    )
    expects = (expect(has_status, "third", allowed=(200,)),)
    with HostileServer(silent_at_kept()) as server:
        (evidence,) = run(server, case("lasting", *asks, expects=expects)).results[0].runs
    assert evidence.keys() == {ask.name for ask in asks}
    assert [number_of(evidence[name][0]) for name in ("first", "second", "third")] == [1, 2, 3]
    third = evidence["third"][0]
    for left in (*evidence["kept"], *evidence["brief"]):
        assert left.ending is Ending.LEFT
        assert left.sent_at_s + left.duration_s <= third.sent_at_s
    assert evidence["kept"][0].sent_at_s < evidence["second"][0].sent_at_s


def test_a_lasting_ask_leaves_at_its_own_time_at_the_latest() -> None:
    kept = Ask(name="kept", path="/kept", manner=Manner(leaving=Leaving.AFTER_OTHERS, leave_after_s=0.02), last_wave=9)
    slow = Ask(name="slow", until=Until(is_at_least, within_s=20, every_s=0.02, args={"number": 5}))
    with HostileServer(silent_at_kept()) as server:
        (evidence,) = run(server, case("lasting", kept, slow, expects=())).results[0].runs
    assert evidence["kept"][0].ending is Ending.LEFT
    assert evidence["kept"][0].duration_s < evidence["slow"][0].sent_at_s


def test_a_scripted_engine_is_asked_in_the_manner_of_its_script() -> None:
    ask = Ask(path="/kept", manner=Manner(timeout_s=20), script_manner=Manner(timeout_s=0.02), script={})
    with HostileServer(silent_at_kept()) as server:
        target = Target(base_url=server.url, timeout_s=20.0)
        report = asyncio.run(
            Runner(target, bounds=QUICK).run([case("scripted", ask)], replace(PROBED, is_scripted=True))
        )
    assert report.results[0].runs[0]["it"][0].ending is Ending.TIMED_OUT


def test_an_ask_is_repeated_until_it_holds() -> None:
    asks = (Ask(until=Until(is_at_least, within_s=20, every_s=0, args={"number": 4})),)
    with HostileServer(counting()) as server:
        result = run(server, case("until", *asks)).results[0]
    assert number_of(result.runs[0]["it"][0]) == 4


def test_an_ask_that_never_holds_is_not_repeated_forever() -> None:
    asks = (Ask(until=Until(is_at_least, within_s=0.05, every_s=0.01, args={"number": 10**9})),)
    with HostileServer(counting()) as server:
        assert outcomes(run(server, case("until", *asks))) == {"until": Outcome.PASS}


def test_a_server_that_answers_slowly_is_asked_once_more_when_the_time_is_over() -> None:
    count, never = counting(), threading.Event()
    asks = (Ask(until=Until(is_at_least, within_s=0.01, every_s=0, args={"number": 3})),)
    with HostileServer(lambda client, head: (never.wait(0.1), count(client, head))[1]) as server:
        result = run(server, case("until", *asks)).results[0]
    assert number_of(result.runs[0]["it"][0]) == 3


def holds_from(number: int) -> Callable[[Exchange], Iterator[Fault]]:
    def check(exchange: Exchange) -> Iterator[Fault]:
        if number_of(exchange) < number:
            raise CannotTell("too early")
        yield from ()

    return check


@pytest.mark.parametrize(
    ("repeats", "tries", "sure_from", "num_runs", "num_conclusive", "outcome"),
    [
        (1, 1, 1, 1, 1, Outcome.PASS),
        (3, 1, 1, 3, 3, Outcome.PASS),
        (1, 3, 3, 3, 1, Outcome.PASS),
        (1, 3, 9, 3, 0, Outcome.INCONCLUSIVE),
        (2, 2, 2, 3, 2, Outcome.PASS),
    ],
)
def test_unsure_cases_are_tried_again_and_sure_ones_repeated(
    repeats: int, tries: int, sure_from: int, num_runs: int, num_conclusive: int, outcome: Outcome
) -> None:
    checked = case("tries", expects=(expect(holds_from(sure_from)),), repeats=repeats, tries=tries)
    with HostileServer(counting()) as server:
        verdict = run(server, checked).results[0].verdict
    assert (verdict.num_runs, verdict.num_conclusive, verdict.outcome) == (num_runs, num_conclusive, outcome)


def test_a_failure_is_not_repeated() -> None:
    with HostileServer(says(http(500, b"{}"))) as server:
        verdict = run(server, case("fails", repeats=5)).results[0].verdict
        assert server.num_requests == 1
    assert (verdict.outcome, verdict.num_runs) == (Outcome.FAIL, 1)


MARKED = tuple(case(f"marked_{name}", Ask(body={"m": "{marker}", "s": "{seed}"}, copies=2), repeats=2) for name in "ab")


def bodies(report: RunReport) -> dict[str, list[Any]]:
    return {
        result.case.id: [one.request_json for evidence in result.runs for one in evidence["it"]]
        for result in report.results
    }


def test_what_is_asked_depends_on_the_seed_alone() -> None:
    with HostileServer(OK) as server:
        first = bodies(run(server, *MARKED, seed=7, jobs=1))
        backwards = bodies(run(server, *reversed(MARKED), seed=7, jobs=3))
        other = bodies(run(server, *MARKED, seed=8))
    assert first == backwards
    assert first != other
    markers = [body["m"] for asked in first.values() for body in asked]
    assert len(set(markers)) == len(markers) == 8
    assert all(isinstance(body["s"], int) for asked in first.values() for body in asked)


def test_cases_that_are_alone_are_alone_and_the_last_come_last() -> None:
    lock = threading.Lock()
    running: list[str] = []
    seen: list[tuple[str, int]] = []

    def play(client: socket.socket, head: bytes) -> None:
        name = head.split(b"/v1/")[1].split(b" ")[0].decode()
        with lock:
            running.append(name)
            seen.append((name, len(running)))
        client.sendall(http(200, b"{}"))
        with lock:
            running.remove(name)

    def asking(name: str, turn: Turn) -> Case:
        return case(name, Ask(path=f"/{name}"), turn=turn)

    turns = {"last": Turn.LAST, "alone1": Turn.ALONE, "shared1": Turn.SHARED, "alone2": Turn.ALONE, "s2": Turn.SHARED}
    with HostileServer(play) as server:
        report = run(server, *(asking(name, turn) for name, turn in turns.items()))
    order = [name for name, _ in seen]
    assert set(order[:2]) == {"shared1", "s2"}
    assert order[2:] == ["alone1", "alone2", "last"]
    assert all(number == 1 for name, number in seen if name not in ("shared1", "s2"))
    assert [result.case.id.partition(".")[2] for result in report.results] == list(turns)


def test_a_server_that_dies_costs_the_later_cases_no_time() -> None:
    server = HostileServer(OK)

    def play(client: socket.socket, head: bytes) -> None:
        if server.num_requests == 3:
            server.close()
        else:
            client.sendall(http(200, b"{}"))

    server.play = play
    cases = [case(f"number_{number}") for number in range(50)]
    with server:
        report = run(server, *cases, jobs=1)
    found = list(outcomes(report).values())
    assert found == [Outcome.PASS] * 2 + [Outcome.INCONCLUSIVE] * 48
    reasons = [result.verdict.reason for result in report.results]
    assert "it went away while this case ran" in reasons[2]
    assert all("the server is gone" in reason for reason in reasons[2:])
    assert "the server is gone" in report.stopped


def test_a_server_that_hangs_is_not_waited_for_again_and_again() -> None:
    release = threading.Event()

    def hang(client: socket.socket, head: bytes) -> None:
        release.wait(20)

    with HostileServer(hang) as server:
        quick = replace(QUICK, answer_s=0.05)
        report = run(server, *(case(f"number_{number}") for number in range(20)), timeout_s=0.05, jobs=1, bounds=quick)
        assert server.num_requests < 5
        release.set()
    assert set(outcomes(report).values()) == {Outcome.INCONCLUSIVE}


def test_a_connection_that_ends_says_nothing_of_a_server_that_is_there() -> None:
    def play(client: socket.socket, head: bytes) -> None:
        if b"/models" in head:
            client.sendall(http(404, b"{}"))

    with HostileServer(play) as server:
        report = run(server, case("first"), case("second"))
    assert outcomes(report) == {"first": Outcome.FAIL, "second": Outcome.FAIL}
    assert report.stopped == ""


def test_a_server_that_ends_in_the_last_cases_was_meant_to() -> None:
    server = HostileServer(OK)

    def play(client: socket.socket, head: bytes) -> None:
        client.sendall(http(200, b"{}"))
        server.close()

    server.play = play
    with server:
        report = run(server, case("last", Ask(), Ask(name="after", wave=1), turn=Turn.LAST))
    assert report.stopped == ""
    assert outcomes(report) == {"last": Outcome.PASS}


def stop_after(server: HostileServer, number: int, cases: list[Case]) -> RunReport:
    async def go() -> RunReport:
        done: list[str] = []

        def tell(result: object) -> None:
            done.append("")
            if len(done) == number:
                runner.stop("it was interrupted")

        runner = Runner(Target(base_url=server.url), jobs=1, tell=tell)
        return await runner.run(cases, PROBED)

    return asyncio.run(go())


def test_a_run_that_is_stopped_reports_what_was_done() -> None:
    with HostileServer(OK) as server:
        report = stop_after(server, 2, [case(f"number_{number}") for number in range(5)])
    assert report.stopped == "it was interrupted"
    assert list(outcomes(report).values()) == [Outcome.PASS] * len(report.results)
    assert len(report.results) + len(report.not_run) == 5
    assert 2 <= len(report.results) <= 3


BOUNDS: dict[str, tuple[RunBounds, str]] = {
    "requests": (RunBounds(max_requests=3), "3 requests"),
    "bytes": (RunBounds(max_bytes=100), "100 bytes"),
    "time": (RunBounds(max_s=0.0), "0 s"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_run_ends_at_its_bounds(name: str) -> None:
    bounds, words = BOUNDS[name]
    with HostileServer(OK) as server:
        report = run(server, *(case(f"number_{number}") for number in range(20)), bounds=bounds, jobs=2)
        assert server.num_requests <= 5
    assert words in report.stopped
    assert report.not_run


def fails_to_derive() -> str:
    raise KeyError("oops")


def fails_to_judge(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    yield Fault(str(exchanges[99]))


def cannot_derive() -> str:
    raise CannotTell("no text to go on from")


def test_a_defect_of_the_suite_is_no_fault_of_the_server() -> None:
    cases = (
        case("derived", Ask(body={"a": Derived(fails_to_derive, ())})),
        case("judged", expects=(expect_over(fails_to_judge, "it"),)),
        case("polled", Ask(until=Until(fails_to_judge, within_s=1))),
        case("unsure", Ask(body={"a": Derived(cannot_derive, ())})),
        case("later"),
    )
    with HostileServer(OK) as server:
        report = run(server, *cases)
    verdicts = {result.case.id: result.verdict for result in report.results}
    for name in ("some.derived", "some.judged", "some.polled"):
        assert verdicts[name].outcome is Outcome.INCONCLUSIVE
        assert verdicts[name].is_suite_fault
    assert verdicts["some.unsure"].reason == "no text to go on from"
    assert not verdicts["some.unsure"].is_suite_fault
    assert verdicts["some.later"].outcome is Outcome.PASS


def test_a_cases_own_timeout_is_its_own() -> None:
    release = threading.Event()

    def hang(client: socket.socket, head: bytes) -> None:
        release.wait(20)

    with HostileServer(hang) as server:
        report = run(server, case("own", Ask(manner=Manner(timeout_s=0.05))))
        assert server.num_requests == 1
        release.set()
    assert outcomes(report) == {"own": Outcome.FAIL}
