"""The report as JSON: valid against the published schema, complete, bounded, without credentials."""

import base64
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.made_report import (
    KEY,
    delta,
    every_outcome,
    make_case,
    make_exchange,
    make_report,
    make_result,
    stream,
    whole,
)
from tidegate.conformance.reports import transcripts as report_transcripts
from tidegate.conformance.reports.builder import (
    MAX_FAULT_CHARS,
    MAX_FAULTS,
    MAX_PASSED_BODY_BYTES,
    MAX_PASSED_COMMANDS,
    build_document,
)
from tidegate.conformance.reports.json_report import report_schema
from tidegate.conformance.reports.secrets_out import SecretsOut
from tidegate.conformance.reports.shown_bytes import shorten, show_bytes
from tidegate.conformance.reports.spans import MAX_SPANS
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.verdict import Fault, Outcome, Verdict
from tidegate.conformance.wire.exchange import Ending
from tidegate.reporting.json_document import render_json

PAGE = Path(__file__).parents[2] / "docs" / "conformance" / "report.schema.json"
PASS = Verdict("chat.it", Outcome.PASS)


def as_json(report: RunReport) -> Any:
    value = json.loads(render_json(build_document(report)))
    jsonschema_rs.validator_for(json.loads(report_schema())).validate(value)
    return value


def one_case(*results: Result) -> Any:
    return as_json(make_report(*results))["cases"][0]


def failed(*faults: Fault) -> Verdict:
    return Verdict("chat.it", Outcome.FAIL, faults)


def test_the_published_schema_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == report_schema(), "run: python -m tidegate.conformance.reports.json_report " + str(
        PAGE
    )


def test_every_outcome_is_valid_and_counted() -> None:
    value = as_json(every_outcome())
    assert value["counts"] == {"passed": 1, "failed": 1, "unsupported": 1, "inconclusive": 1}
    assert [area["name"] for area in value["areas"]] == ["chat", "tools"]
    assert value["server"]["identity"] == {"server": "made-up/1.0"}
    capability = {one["name"]: one for one in value["capabilities"]}
    assert capability["tools"]["reason"].startswith("POST /v1/chat/completions with tools: 400")
    assert capability["chat"] == {
        "name": "chat",
        "title": "chat completions",
        "is_there": True,
        "reason": "POST /v1/chat/completions: 200",
    }


def test_a_run_that_ended_early_says_so() -> None:
    value = as_json(make_report(stopped="it was interrupted", not_run=("chat.a", "chat.b")))
    assert (value["stopped"], value["not_run"]) == ("it was interrupted", ["chat.a", "chat.b"])


def test_a_case_says_what_it_asks_what_must_hold_and_the_clause() -> None:
    case = as_json(every_outcome())["cases"][0]
    assert case["asks"] == [
        {"name": "it", "method": "POST", "path": "/chat/completions", "wave": 0, "copies": 1, "says": []}
    ]
    assert case["checks"] == [
        {"name": "says_hello", "says": "The answer says hello.", "on": ["it"], "args": "allowed = 200, 404"}
    ]
    assert case["clauses"][0]["source"].startswith("OpenAI OpenAPI")
    assert case["by_hand"][0].startswith("curl -sSiN http://server:8000/v1/chat/completions")


def test_credentials_that_a_server_repeats_are_taken_out() -> None:
    text = render_json(build_document(every_outcome()))
    assert KEY not in text
    assert "Incorrect API key REDACTED" in text


def test_halves_of_pairs_are_spelled_and_secrets_taken_out() -> None:
    secrets = SecretsOut(("abcdefghi", None))
    assert secrets.of_text("abcdefghi \ud800") == "REDACTED \\ud800"
    assert secrets.of_bytes(b"\xffabcdefghi") == b"\xffREDACTED"


def test_events_and_reads_have_their_times() -> None:
    exchange = make_exchange(stream([(0.1, '{"choices": []}'), (0.5, "[DONE]")]))
    transcript = one_case(make_result(make_case("chat.it"), PASS, {"it": [exchange]}))["transcripts"][0]
    assert transcript["events"] == [
        {"index": 0, "at_s": 0.1, "data": '{"choices": []}', "is_cut": False},
        {"index": 1, "at_s": 0.5, "data": "[DONE]", "is_cut": False},
    ]
    assert [read["at_s"] for read in transcript["reads"]] == [0.008, 0.1, 0.5, 0.5]


@pytest.mark.parametrize("ending", Ending, ids=lambda ending: ending.name)
def test_every_ending_is_told(ending: Ending) -> None:
    exchange = make_exchange([], ending=ending, detail="so it was")
    transcript = one_case(make_result(make_case("chat.it"), PASS, {"it": [exchange]}))["transcripts"][0]
    assert transcript["ending"] == ending.name
    assert transcript["ending_says"] == f"{ending.value}: so it was"
    assert transcript["status"] is None


def test_a_body_of_a_megabyte_is_cut_in_the_middle_and_said_so() -> None:
    exchange = make_exchange(whole(b"a" * 500_000 + b"b" * 500_000))
    case = one_case(make_result(make_case("chat.it"), failed(Fault("wrong", ask="it")), {"it": [exchange]}))
    response = case["transcripts"][0]["response"]
    assert response["start"].startswith("HTTP/1.1 200 OK")
    assert response["end"].endswith("bbb")
    kept = len(response["start"]) + len(response["end"])
    assert kept == report_transcripts.MAX_RESPONSE_BYTES
    assert response["num_cut"] == response["num_bytes"] - kept
    assert case["cut"] == [f"{response['num_cut']} bytes are left out of the exchanges below; each says where"]


def test_a_case_that_passed_keeps_less() -> None:
    exchange = make_exchange(whole(b"a" * 500_000))
    shown = one_case(make_result(make_case("chat.it"), PASS, {"it": [exchange]}))["transcripts"][0]
    assert shown["response"]["num_bytes"] - shown["response"]["num_cut"] == report_transcripts.MAX_PASSED_RESPONSE_BYTES


def test_of_a_case_that_passed_the_first_and_last_are_told_and_the_rest_counted() -> None:
    events = [(0.01 * number, delta(content=f"{number}")) for number in range(1, 100)]
    exchanges = [make_exchange(stream(events), {"text": "a" * 5000}, copy=copy) for copy in range(70)]
    case = one_case(make_result(make_case("chat.it"), PASS, {"it": exchanges}))
    first = case["transcripts"][0]
    assert len(case["transcripts"]) == report_transcripts.MAX_PASSED_TRANSCRIPTS
    assert case["cut"][0] == "68 of 70 exchanges are left out"
    assert case["num_exchanges"] == 70
    assert first["request"]["num_bytes"] - first["request"]["num_cut"] == report_transcripts.MAX_PASSED_REQUEST_BYTES
    assert [event["index"] for event in first["events"]] == [0, 1, 97, 98]
    assert (first["num_events"], len(first["reads"])) == (99, report_transcripts.MAX_PASSED_EVENTS)
    assert (len(case["spans"]), case["num_spans"]) == (MAX_SPANS, 70)
    assert len(case["by_hand"]) == MAX_PASSED_COMMANDS
    assert "the body of 5012 bytes is to be put into" in case["by_hand"][0], MAX_PASSED_BODY_BYTES


def test_a_large_request_and_many_answers_are_cut_to_the_bound_of_a_case() -> None:
    large = [make_exchange(whole(b"b" * 200_000), {"text": "a" * 100_000}, copy=copy) for copy in range(9)]
    case = one_case(make_result(make_case("chat.it"), failed(Fault("wrong", ask="it")), {"it": large}))
    first = case["transcripts"][0]["request"]
    assert first["num_bytes"] - first["num_cut"] == report_transcripts.MAX_REQUEST_BYTES
    parts = [transcript[part] for transcript in case["transcripts"] for part in ("request", "response")]
    assert sum(part["num_bytes"] - part["num_cut"] for part in parts) == report_transcripts.MAX_CASE_BYTES


def test_what_shows_the_fault_is_kept_first() -> None:
    copies = [make_exchange(whole(b"x" * 3000), copy=copy) for copy in range(100)]
    verdict = failed(Fault("wrong", ask="it", copy=77))
    case = one_case(make_result(make_case("chat.it"), verdict, {"it": copies}, {"it": copies}))
    assert len(case["transcripts"]) == report_transcripts.MAX_TRANSCRIPTS
    assert case["cut"][0] == "176 of 200 exchanges are left out"
    shown = [transcript for transcript in case["transcripts"] if transcript["copy"] == 77]
    assert [transcript["run"] for transcript in shown] == [0, 1]
    assert all(transcript["response"]["num_cut"] == 0 for transcript in shown)


def test_events_beyond_the_bound_are_left_out_of_the_middle() -> None:
    events = [(0.001 * number, f'{{"n": {number}}}') for number in range(1000)]
    exchange = make_exchange(stream([*events, (1.5, '{"long": "' + "x" * 9000 + '"}')]))
    result = make_result(make_case("chat.it"), failed(Fault("wrong", ask="it")), {"it": [exchange]})
    transcript = one_case(result)["transcripts"][0]
    assert transcript["num_events"] == 1001
    assert [event["index"] for event in transcript["events"]] == [*range(200), *range(801, 1001)]
    assert transcript["events"][-1]["is_cut"]
    assert len(transcript["reads"]) == report_transcripts.MAX_READS
    assert sum(read["num_bytes"] for read in transcript["reads"]) == transcript["response"]["num_bytes"]


def test_faults_are_bounded_and_counted() -> None:
    verdict = failed(*(Fault("x" * 9000, event=event, ask="it") for event in range(100)))
    case = one_case(make_result(make_case("chat.it"), verdict, {"it": [make_exchange(whole(b"1"))]}))
    assert (len(case["faults"]), case["num_faults"]) == (MAX_FAULTS, 100)
    assert max(len(fault["says"]) for fault in case["faults"]) == MAX_FAULT_CHARS


CUTS = {
    "whole": (b"abc", 10, "utf-8", "abc", "", 0),
    "in the middle": (b"0123456789abcdef", 8, "utf-8", "012345", "ef", 8),
    "characters stay whole": ("é".encode() * 8, 9, "utf-8", "ééé", "é", 8),
    "four bytes": ("🙂".encode() * 4, 9, "utf-8", "🙂", "", 12),
    "nothing fits": (b"abc", 0, "utf-8", "", "", 3),
    "not UTF-8": (b"\xff\x00", 10, "base64", base64.b64encode(b"\xff\x00").decode(), "", 0),
    "not UTF-8, cut": (b"\xff" * 8, 4, "base64", "////", "/w==", 4),
}


@pytest.mark.parametrize("name", CUTS)
def test_bytes_are_shown_as_text_or_base64_and_cut_between_characters(name: str) -> None:
    data, max_bytes, encoding, start, end, num_cut = CUTS[name]
    shown = show_bytes(data, max_bytes)
    assert (shown.encoding, shown.start, shown.end, shown.num_cut) == (encoding, start, end, num_cut)
    assert shown.num_bytes == len(data)
    assert shorten(show_bytes(data, len(data)), max_bytes) == shown, "what is shown is cut in the same way"
