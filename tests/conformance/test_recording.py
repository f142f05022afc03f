"""A recording holds a run byte for byte, and is judged as the run was."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.exchanges import answered, exchanged, http
from harness.hostile_server import HostileServer, says
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.checks.body import has_value
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.judge import CaseRun
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.recording import files as recording_files
from tidegate.conformance.recording import format as recording
from tidegate.conformance.recording.files import RecordingWriter, read_recording
from tidegate.conformance.recording.format import (
    RecordingError,
    decode_bytes,
    decode_case,
    encode_bytes,
    encode_case,
)
from tidegate.conformance.recording.replay import manifest_of, replay
from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.running.runner import Runner
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange
from tidegate.conformance.wire.target import Target

BYTES: dict[str, bytes] = {
    "nothing": b"",
    "text": "Brücke\r\n\x00\u2028".encode(),
    "no text": b"\xff\xfe\x80",
    "long": b"a" * 1_000_000,
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_come_back(name: str) -> None:
    value = json.loads(json.dumps(encode_bytes(BYTES[name])))
    assert decode_bytes(value) == BYTES[name]
    assert len(json.dumps(value)) < 10_000


EXCHANGES: dict[str, Exchange] = {
    "whole": answered(200, {"a": 1}),
    "stream in pieces": exchanged(b"HTTP/1.1 200 OK\r\n", b"\r\ndata: {}\n", b"\n\xff", detail="so", sent_at_s=1.5),
    "nothing": exchanged(ending=Ending.NO_CONNECTION, method="GET"),
    "with JSON": exchanged(request=b'POST / HTTP/1.1\r\n\r\n{"a": [1, null]}', request_json={"a": [1, None]}),
    "with half a pair": exchanged(
        request=b"POST / HTTP/1.1\r\n\r\n" + '{"a": "\ud800"}'.encode("utf-8", "surrogatepass"),
        request_json={"a": "\ud800"},
    ),
    "with bytes that are no JSON": exchanged(request=b"POST / HTTP/1.1\r\n\r\n{"),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_comes_back_whole(name: str) -> None:
    exchange = EXCHANGES[name]
    runs = (CaseRun({"it": (exchange,)}), CaseRun({}, "gone", is_suite_fault=True))
    case_id, decoded, duration_s = decode_case(json.loads(json.dumps(encode_case("a.b", runs, 2.5))))
    assert (case_id, duration_s) == ("a.b", 2.5)
    assert decoded == runs
    assert decoded[0].evidence["it"][0].request_json == exchange.request_json


def never_sure(exchange: Exchange) -> Iterator[Fault]:
    raise CannotTell("the text is too short")
    yield


def breaks(exchange: Exchange) -> Iterator[Fault]:
    yield from [Fault(exchange.headers["no-such-header"])]


def case(name: str, *expects: Any, **fields: Any) -> Case:
    return Case(
        id=f"some.{name}",
        title="t",
        why="w",
        clauses=(),
        severity=Severity.NUISANCE,
        asks=fields.pop("asks", (Ask(body={"model": "{model}", "mark": "{marker}"}),)),
        expects=expects,
        **fields,
    )


CASES = (
    case("passes", expect(has_status, allowed=(200,)), expect(has_value, path=("object",), value="sea")),
    case("fails", expect(has_status, allowed=(404,))),
    case("is_unsure", expect(never_sure), tries=3),
    case("lacks", expect(has_status, allowed=(200,)), needs=(Capability.DRAIN,)),
    case("breaks", expect(breaks)),
    case("repeats", expect(has_status, allowed=(200,)), repeats=2),
    case("copies", expect(has_status, allowed=(200,)), asks=(Ask(copies=3), Ask(name="other", method="GET", wave=1))),
)
PROBED = Probed("tide-1", frozenset(), {Capability.DRAIN: "not allowed"}, False, False, {}, {"server": "sea"})
KEY = "sk-tide-0123456789"


def record(folder: Path) -> RunReport:
    body = json.dumps({"object": "sea", "echo": KEY}).encode()
    writer = RecordingWriter(folder)
    with HostileServer(says(http(200, body))) as server:
        target = Target(base_url=server.url, api_key=KEY, admin_token="admin-" + KEY, seed=7)
        report = asyncio.run(Runner(target, tell=writer.write_case).run(CASES, PROBED))
    writer.write_manifest(manifest_of(report, suite="1.2.3", profile="openai"))
    return report


def test_a_recording_gives_the_same_verdicts_without_the_server(tmp_path: Path) -> None:
    live = record(tmp_path)
    kept = read_recording(tmp_path)
    again = replay(kept, CASES)
    assert [result.verdict for result in again.results] == [result.verdict for result in live.results]
    assert [result.runs for result in again.results] == [result.runs for result in live.results]
    assert again.probed == live.probed
    assert (again.started_at, again.not_run, again.target.seed) == (live.started_at, (), 7)
    assert kept.manifest.suite == "1.2.3"


def test_what_can_be_seen_in_verdicts_of_all_kinds(tmp_path: Path) -> None:
    verdicts = {result.case.id: result.verdict for result in record(tmp_path).results}
    assert {name: verdict.outcome.value for name, verdict in verdicts.items()} == {
        "some.passes": "pass",
        "some.fails": "fail",
        "some.is_unsure": "inconclusive",
        "some.lacks": "unsupported",
        "some.breaks": "inconclusive",
        "some.repeats": "pass",
        "some.copies": "pass",
    }
    assert verdicts["some.is_unsure"].confidence == "0 of 3 runs told something"
    assert verdicts["some.repeats"].confidence == "2 of 2 runs told something"
    assert verdicts["some.passes"].confidence == ""
    assert verdicts["some.lacks"].reason == "not allowed"
    assert verdicts["some.breaks"].is_suite_fault
    assert "the suite itself failed: KeyError" in verdicts["some.breaks"].reason
    assert "in breaks" in verdicts["some.breaks"].reason


def test_no_credential_is_in_any_file(tmp_path: Path) -> None:
    record(tmp_path)
    for path in tmp_path.rglob("*.json"):
        assert "0123456789" not in path.read_text()
    assert "REDACTED" in (tmp_path / "cases" / "some.passes.json").read_text()


def test_cases_of_another_version_are_told_apart(tmp_path: Path) -> None:
    record(tmp_path)
    renamed = case("passes", expect(has_status, "asked", allowed=(200,)), asks=(Ask(name="asked"),))
    report = replay(read_recording(tmp_path), (renamed, case("is_new", expect(has_status, allowed=(200,)))))
    assert report.results[0].verdict.reason == "the recording was made with another version of this case"
    assert report.not_run == ("some.is_new",)


def damage(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


DAMAGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "another format": ("manifest.json", {"format": "x"}, "not of a recording"),
    "a later version": ("manifest.json", {"version": 2}, "format version 2"),
    "no target": ("manifest.json", {"target": None}, "incomplete"),
    "a path for a case": ("manifest.json", {"cases": ["../../etc/passwd"]}, "no id of a case"),
    "a case that is missing": ("manifest.json", {"cases": ["some.other"]}, "is missing"),
    "a case of another name": ("cases/some.fails.json", {"case": "some.passes"}, "is of the case"),
    "no runs": ("cases/some.fails.json", {"runs": None}, "damaged"),
    "a run of another shape": ("cases/some.fails.json", {"runs": [{"asks": {"it": [1]}}]}, "damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_recording_is_refused_in_words(tmp_path: Path, name: str) -> None:
    record(tmp_path)
    file, changes, words = DAMAGES[name]
    damage(tmp_path, file, **changes)
    with pytest.raises(RecordingError, match=words):
        read_recording(tmp_path)


def test_a_folder_that_is_no_recording_is_neither_read_nor_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RecordingError, match="not a recording"):
        read_recording(tmp_path)
    with pytest.raises(RecordingError, match=r"thesis\.txt"):
        RecordingWriter(tmp_path)
    with pytest.raises(RecordingError):
        RecordingWriter(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_recording_replaces_an_older_one_and_is_none_until_it_is_done(tmp_path: Path) -> None:
    record(tmp_path)
    RecordingWriter(tmp_path)
    with pytest.raises(RecordingError, match="not finished"):
        read_recording(tmp_path)
    assert list((tmp_path / "cases").iterdir()) == []


def test_bytes_that_unpack_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = encode_bytes(b"a" * 100_000)
    monkeypatch.setattr(recording, "MAX_BYTES", 99_999)
    with pytest.raises(ValueError, match="more than 99999 bytes"):
        decode_bytes(packed)


def test_a_file_beyond_the_bound_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path)
    monkeypatch.setattr(recording_files, "MAX_FILE_BYTES", 100)
    with pytest.raises(RecordingError, match="more than 100 bytes"):
        read_recording(tmp_path)
