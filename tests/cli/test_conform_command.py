"""`tidegate conform` as a person meets it: arguments, what is announced, what is told, how it ends."""

import fnmatch
import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.exchanges import http
from harness.hostile_server import HostileServer, Plays, says
from tidegate.cli.conform_show import show_case
from tidegate.cli.main import cli
from tidegate.conformance.catalog import CASES

MODELS = {"object": "list", "data": [{"id": "tide-1", "object": "model", "created": 1, "owned_by": "sea"}]}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "tide-1",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Red.", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
NOT_FOUND = {"error": {"message": "no such thing", "type": "invalid_request_error", "param": None, "code": "not_found"}}


def peer(client: socket.socket, head: bytes) -> None:
    """A small right server: models, and one answer to every chat."""
    if b"GET /v1/models HTTP" in head:
        client.sendall(http(200, json.dumps(MODELS).encode()))
    elif b"GET /v1/models/tide-1 HTTP" in head:
        client.sendall(http(200, json.dumps(MODELS["data"][0]).encode()))  # type: ignore[index]
    elif b"POST /v1/chat/completions HTTP" in head:
        client.sendall(http(200, json.dumps(ANSWER).encode()))
    else:
        client.sendall(http(404, json.dumps(NOT_FOUND).encode()))


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(peer) as running:
        yield running


def run(*arguments: str, **environment: str) -> Result:
    settings: dict[str, str | None] = {"COLUMNS": "110", "TIDEGATE_API_KEY": None, **environment}
    return CliRunner().invoke(cli, ["conform", *arguments], env=settings, prog_name="tidegate")


def test_only_the_address_is_needed_and_all_is_told(server: HostileServer) -> None:
    result = run("--base-url", server.url, "--only", "models.list", "--only", "chat.object")
    assert result.exit_code == 0, result.output
    assert f"asking {server.url} what it can do" in result.stderr
    assert "model tide-1, seed " in result.stderr
    assert " cases; at most " in result.stderr
    assert "pass" in result.stdout


def test_a_failure_is_exit_status_1_with_its_clause_and_a_curl_line(server: HostileServer) -> None:
    server.play = says(http(200, b'{"object": "list", "data": [{"id": "tide-1"}]}'))
    result = run("--base-url", server.url, "--only", "models.list", "--model", "mine")
    assert result.exit_code == 1
    assert "models.list" in result.stderr
    for words in ("breaks clients", "clause: ", f"curl -sSiN {server.url}/models"):
        assert words in result.stdout


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no address": ((), "--base-url"),
    "a strange address": (("--base-url", "ftp://x"), "is not an address of a server"),
    "no server": (("--base-url", "http://127.0.0.1:1"), "no connection could be made"),
    "a pattern of no case": (("--base-url", "http://127.0.0.1:1", "--only", "modles.*"), "'modles.*' matches no case"),
    "a profile that is not there": (("--base-url", "http://127.0.0.1:1", "--profile", "vllm"), "it can be openai, tid"),
    "a report of no kind": (("--base-url", "http://127.0.0.1:1", "--report", "r.pdf"), "r.pdf"),
    "a case that is not there": (("--show", "models.lst"), "did you mean models.list"),
    "a recording that is none": (("--replay", "no-such-folder"), "is missing"),
    "a replay of a server": (("--replay", "x", "--base-url", "http://127.0.0.1:1"), "asks no server"),
    "no token": (("--base-url", "http://127.0.0.1:1", "--admin-token-file", "no-such-file"), "no-such-file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_run_is_exit_status_2_with_words(name: str) -> None:
    arguments, words = WRONG[name]
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_hostile_servers_are_exit_status_2_with_words(server: HostileServer) -> None:
    for play in (says(), says(b"garbage\r\n\r\n"), says(http(200, b"[]")), says(http(401, b"{}"))):
        server.play = play
        result = run("--base-url", server.url)
        assert result.exit_code == 2
        assert "tidegate conform: GET" in result.stderr


def test_cases_that_tell_nothing_are_exit_status_2(server: HostileServer) -> None:
    result = run("--base-url", server.url, "--only", "auth.*")
    assert result.exit_code == 2
    assert "No case told anything" in result.stdout


def test_a_recording_is_judged_as_the_run_was(server: HostileServer, tmp_path: Path) -> None:
    folder, page = tmp_path / "kept", tmp_path / "report.json"
    key = "sk-tide-0123456789"
    arguments = ("--only", "models.*", "--only", "chat.object", "--report", str(page))
    live = run("--base-url", server.url, "--record", str(folder), "--seed", "7", *arguments, TIDEGATE_API_KEY=key)
    told = json.loads(page.read_text())
    server.close()
    again = run("--replay", str(folder), *arguments)
    assert live.exit_code == again.exit_code
    assert live.stdout == again.stdout
    assert json.loads(page.read_text()) == told
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["seed"], manifest["target"]["model"], manifest["identity"]) == (7, "tide-1", {"owned_by": "sea"})
    assert key not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))


def test_a_recording_that_cannot_be_written_ends_the_run(server: HostileServer, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    result = run("--base-url", server.url, "--record", str(tmp_path))
    assert result.exit_code == 2
    assert "mine.txt" in result.stderr
    assert server.num_requests == 0


def test_known_failures_do_not_fail_and_cured_ones_are_named(server: HostileServer, tmp_path: Path) -> None:
    server.play = says(http(200, b'{"object": "list", "data": [{"id": "tide-1"}]}'))
    profile = tmp_path / "profile.toml"
    profile.write_text('only = ["models.list", "models.unknown"]\n[expected]\n"models.list" = "an old gateway"\n')
    broken = run("--base-url", server.url, "--profile", str(profile), "--verbose")
    assert "known failure: an old gateway" in broken.output.replace("\n", " ") or "models.list" in broken.output
    server.play = peer
    cured = run("--base-url", server.url, "--profile", str(profile))
    assert "models.list passes, and the profile expects it to fail" in cured.stdout
    assert cured.exit_code == 0


def interrupting(after: int) -> Plays:
    seen: list[bytes] = []

    def play(client: socket.socket, head: bytes) -> None:
        if b"User-Agent: tidegate-conform" in head and b"/models" in head:
            seen.append(head)
            if len(seen) == after:
                os.kill(os.getpid(), signal.SIGINT)
        peer(client, head)

    return play


def test_an_interrupted_run_reports_what_was_done(server: HostileServer) -> None:
    server.play = interrupting(after=4)
    result = run("--base-url", server.url, "--only", "models.*", "--jobs", "1")
    assert result.exit_code in (1, 2)
    assert "interrupted: reporting what was done" in result.stderr
    assert "The run ended early: it was interrupted" in result.stdout


def test_cases_can_be_listed_and_shown_without_a_server() -> None:
    listed = run("--list")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [case.id for case in CASES]
    shown = run("--show", "chat.object")
    assert shown.exit_code == 0
    for words in ("why", "severity", "clause", "must hold", "curl -sSiN"):
        assert words in shown.stdout


def test_every_case_can_be_shown() -> None:
    for case in CASES:
        assert any(line.startswith("clause") for line in show_case(case)), case.id


def test_the_examples_of_the_help_name_cases_that_there_are() -> None:
    text = run("--help").stdout
    shown = re.findall(r"--show ([a-z_.]+)", text)
    patterns = re.findall(r"--only '([^']+)'", text)
    assert shown
    assert patterns
    ids = [case.id for case in CASES]
    assert [name for name in shown if name not in ids] == []
    assert [pattern for pattern in patterns if not fnmatch.filter(ids, pattern)] == []
