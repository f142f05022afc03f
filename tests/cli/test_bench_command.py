"""`tidegate bench`: arguments, what it says before it begins, exit status, reports, interruption."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.crooked_server import CrookedServer
from harness.server_thread import ServerThread
from tidegate.cli import bench_command
from tidegate.cli.bench_command import bench

NOWHERE = "http://127.0.0.1:9/v1"
FEW = ("--requests", "3", "--runs", "2", "--seed", "1")


@pytest.fixture
def server() -> Iterator[CrookedServer]:
    with CrookedServer("right", "no usage", "json") as running:
        yield running


def run(*arguments: str) -> Result:
    return CliRunner().invoke(bench, list(arguments))


def test_one_server_is_measured_and_reported_in_every_form(server: CrookedServer, tmp_path: Path) -> None:
    flags = [part for name in ("a.html", "a.json", "a.md") for part in ("--report", str(tmp_path / name))]
    flags += ["--plots", str(tmp_path / "plots"), "--slo-ttft", "60000"]
    outcome = run("--base-url", server.url, *FEW, "--clients", "2", *flags)
    assert outcome.exit_code == 0, outcome.output
    for words in (
        "Costs at most 8 requests, 1,536 tokens",
        "6 requests in 2 runs: 6 done, no errors",
        "by its usage",
        "warm-up",
    ):
        assert words in outcome.output
    report = json.loads((tmp_path / "a.json").read_text())
    (measured,) = report["servers"]
    assert measured["model"] == "right"
    assert [run["total"]["output_tokens"] for run in measured["runs"]] == [15, 15]
    assert measured["spreads"]["good_share"]["median"] == 1.0
    assert len(server.bodies) == 2 + 2 + 6, "two probes, two to warm it up, six"
    assert (tmp_path / "a.html").read_text().count("<svg") >= 6
    assert len(list((tmp_path / "plots").iterdir())) == 6


def test_two_servers_are_measured_in_turns(server: CrookedServer, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with CrookedServer("no usage") as other:
        outcome = run(
            "--base-url", server.url, "--against", other.url, *FEW, "--report", str(path),
            "--require", "requests_per_s>=0.0001",
        )  # fmt: skip
        asked = [len(each.bodies) for each in (server, other)]
    assert outcome.exit_code == 0, outcome.output
    assert asked == [2 + 1 + 6] * 2
    report = json.loads(path.read_text())
    assert [each["label"] for each in report["servers"]] == ["first", "second"]
    begun = [[run["begun_s"] for run in each["runs"]] for each in report["servers"]]
    assert begun[0][0] < begun[1][0] < begun[1][1] < begun[0][1]
    assert report["requirements"][0]["is_met"] is True
    assert "counted by pieces" in outcome.output


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        (("--require", "ttft_p50<=0.000001ms"), 1, "NOT MET: ttft_p50<=0.000001ms"),
        (("--model", "json", "--workload", "constrained"), 2, "broke_schema"),
        (("--model", "nobody"), 2, "no such model"),
        (("--model", "busy"), 2, "too much"),
        (("--max-tokens", "100"), 2, "more than --max-tokens 100"),
        (("--rate", "500", "--arrival", "fixed"), 0, "500 sessions a second, arriving evenly"),
        (("--workload", "agent", "--turns", "2"), 0, "12 done, no errors"),
        (("--api", "completions"), 0, "(completions)"),
    ],
    ids=["not met", "schema", "no model", "busy", "dear", "open loop", "agent", "completions"],
)
def test_the_exit_status_tells_what_came_of_it(
    server: CrookedServer, flags: tuple[str, ...], status: int, says: str
) -> None:
    outcome = run("--base-url", server.url, *FEW, *flags)
    assert says in outcome.output
    assert outcome.exit_code == status, outcome.output


def test_a_file_of_requests_is_sent_as_it_stands(server: CrookedServer, tmp_path: Path) -> None:
    path = tmp_path / "load.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "one"}], "top_p": 0.3}\n{"prompt": "two", "max_tokens": 9}\n'
    )
    outcome = run("--base-url", server.url, *FEW, "--workload", str(path), "--warmup", "0", "--extra-body", '{"x": 1}')
    assert outcome.exit_code == 0, outcome.output
    asked = server.bodies[2:]
    assert [body["messages"][0]["content"] for body in asked] == ["one", "two"] * 3
    assert (asked[0]["top_p"], asked[1]["max_tokens"], asked[0]["x"]) == (0.3, 9, 1)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--clients", "2", "--rate", "1"), "give one of them"),
        (("--report", "a.txt"), "must end in"),
        (("--report", "no/such/a.md"), "there is no folder"),
        (("--workload", "none"), "No such file"),
        (("--input-tokens", "many"), "is no length in tokens"),
        (("--require", "speed>=1"), "no number is called speed"),
        (("--against", NOWHERE, "--require", "ttft_p50<=3ms"), "it is ratios that are judged"),
        (("--extra-body", "[]"), "not a JSON object"),
        (("--base-url", "ftp://x"), "is not an address"),
        (("--api-key", "a b"), "cannot stand in a header"),
        (("--rate", "0"), "0.0 is not in the range"),
    ],
    ids=["two loops", "form", "folder", "workload", "length", "number", "ratio", "body", "address", "key", "rate"],
)
def test_orders_that_make_no_sense_are_refused_before_anything_is_asked(flags: tuple[str, ...], says: str) -> None:
    outcome = run("--base-url", NOWHERE, *flags)
    assert outcome.exit_code == 2
    assert says in " ".join(outcome.output.split())


def test_a_server_that_is_not_there_is_exit_status_2() -> None:
    outcome = run("--base-url", NOWHERE, *FEW)
    assert outcome.exit_code == 2
    assert "no connection" in outcome.output


@pytest.mark.process
def test_an_interrupted_run_reports_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    flags = (
        "--warmup",
        "0",
        "--requests",
        "200",
        "--runs",
        "1",
        "--rate",
        "20",
        "--arrival",
        "fixed",
        "--report",
        str(path),
    )
    code = "from tidegate.cli.main import main; main()"
    with CrookedServer("right") as server:
        command = [sys.executable, "-c", code, "bench", "--base-url", server.url, *flags]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ)
        while len(server.bodies) < 5:
            with suppress(subprocess.TimeoutExpired):
                child.wait(0.05)
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output = child.communicate(timeout=60)[0].decode()
    assert child.returncode == 130, output
    assert "interrupted: reporting what was measured" in output
    assert "It ended early: it was interrupted." in output
    report = json.loads(path.read_text())
    assert report["stopped"] == "it was interrupted"
    assert report["servers"][0]["runs"][0]["total"]["num_done"] >= 1


@pytest.mark.process
def test_the_scripted_server_is_measured_with_usage_and_paces(tmp_path: Path) -> None:
    script = '{"x_script": {"pieces": ["48656c6c6f20"], "repeat": 6, "delays_s": [0.01]}}'
    path = tmp_path / "a.json"
    with ServerThread("scripted") as server:
        flags = ("--clients", "4", "--requests", "8", "--runs", "1", "--extra-body", script, "--report", str(path))
        outcome = run("--base-url", server.url + "/v1", *flags)
    assert outcome.exit_code == 0, outcome.output
    (measured,) = json.loads(path.read_text())["servers"][0]["runs"]
    total = measured["total"]
    assert (total["num_done"], total["output_tokens"], measured["counted_by"]) == (8, 48, "usage")
    assert total["itl_s"]["count"] >= 8
    assert total["prompt_tokens"] > 8 * 100


def test_orders_beyond_the_bounds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "load.jsonl"
    path.write_text('{"prompt": "x"}\n')
    monkeypatch.setattr(bench_command, "MAX_FILE_BYTES", 3)
    for flags, says in (
        (("--requests", str(bench_command.MAX_SESSIONS + 1)), "is not in the range"),
        (("--clients", str(bench_command.MAX_CLIENTS + 1)), "is not in the range"),
        (("--max-in-flight", str(bench_command.MAX_CLIENTS + 1)), "is not in the range"),
        (("--workload", str(path)), "more than 3 bytes"),
    ):
        outcome = run("--base-url", NOWHERE, *flags)
        assert outcome.exit_code == 2
        assert says in outcome.output


def test_the_help_shows_every_flag_under_a_heading() -> None:
    listed = [name for names in bench_command.HEADINGS.values() for name in names]
    assert sorted(listed) == sorted(parameter.name or "" for parameter in bench.params)
    outcome = run("--help")
    assert outcome.exit_code == 0
    assert "--help" in outcome.output
    assert all(heading in outcome.output for heading in bench_command.HEADINGS)
