"""Reports of a run against a real server that is broken, hostile, and repeats the caller's key: all kinds."""

import asyncio
import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from harness.judged_case import RightServer, RightServers, mutated
from harness.made_report import HOSTILE
from harness.mutant import Headers, Heard, Mutant
from tidegate.conformance.catalog import CASES
from tidegate.conformance.reports.builder import build_document
from tidegate.conformance.reports.json_report import report_schema
from tidegate.conformance.reports.renderers import RENDERERS
from tidegate.conformance.running.runner import Runner

ASKED = ("chat.object", "stream.one_id", "stream.done", "auth.no_key", "models.list", "tools.call_id")
SENT = HOSTILE.replace("\ud800", "")


class _Hostile(Mutant):
    """Breaks ids and objects, and says the caller's key and harmful text wherever it can."""

    says = "is hostile"

    def head(self, heard: Heard, status: int, headers: Headers) -> tuple[int, Headers]:
        return status, [*headers, ("X-You-Sent", heard.header("authorization") or "nothing")]

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        harm = {"object": SENT, "key": heard.header("authorization")}
        return value | harm if isinstance(value, dict) else value

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        yield chunk | {"id": f"{SENT} {heard.header('authorization')} {position}"}


@pytest.fixture(scope="module")
def broken() -> Iterator[RightServer]:
    with RightServers() as servers, mutated(servers.of("keyed"), _Hostile()) as server:
        yield server


@pytest.fixture(scope="module")
def written(broken: RightServer) -> dict[str, str]:
    """The reports, by suffix."""
    cases = [case for case in CASES if case.id in ASKED]
    report = asyncio.run(Runner(broken.target).run(cases, broken.probed))
    document = build_document(report)
    return {suffix: render(document) for suffix, render in RENDERERS.items()}


def test_the_json_of_a_real_run_keeps_the_schema(written: dict[str, str]) -> None:
    value = json.loads(written[".json"])
    jsonschema_rs.validator_for(json.loads(report_schema())).validate(value)
    outcomes = {case["id"]: case["outcome"] for case in value["cases"]}
    assert outcomes["chat.object"] == outcomes["stream.one_id"] == "fail"
    assert outcomes["stream.done"] == "pass"
    stream = next(case for case in value["cases"] if case["id"] == "stream.one_id")
    assert stream["transcripts"][0]["num_events"] == len(stream["transcripts"][0]["events"]) > 3


def test_no_report_holds_the_key_or_anything_that_acts(written: dict[str, str], broken: RightServer) -> None:
    key = broken.target.api_key
    assert key is not None
    for suffix, text in written.items():
        assert key not in text, suffix
        if suffix != ".json":
            assert not [character for character in SENT if character < " " and character in text], suffix
            assert "\u202e" not in text, suffix
    assert "<script>alert" not in written[".html"]
    assert "X-You-Sent: Bearer REDACTED" in written[".html"]


def test_the_xml_of_a_real_run_is_read_by_a_parser(written: dict[str, str]) -> None:
    root = ElementTree.fromstring(written[".xml"])
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert {"chat.object", "stream.one_id"} <= set(failed)


def test_a_curl_line_of_a_report_can_be_read_by_a_shell(written: dict[str, str]) -> None:
    value = json.loads(written[".json"])
    commands = [command for case in value["cases"] for command in case["by_hand"]]
    assert len(commands) >= len(ASKED) - 1
    for command in commands:
        done = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), command
