"""A server is not open to more people than somebody has said: what it asks for, and when it refuses to start."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tidegate.cli.access import (
    AccessError,
    gather_access_facts,
    open_access,
    open_admin_access,
    read_credential,
    refuse_exposure,
)
from tidegate.cli.check_access import AccessFacts, check_access
from tidegate.cli.finding import Level
from tidegate.cli.main import cli
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve
from tidegate.cli.sockets import is_loopback
from tidegate.cli.state_folder import (
    StateFolderError,
    locate_keys_file,
    locate_state_folder,
    make_private_folder,
)
from tidegate.http.authorise import allow_everyone
from tidegate.testing.manual_clock import ManualClock

OK, WARNING, PROBLEM = Level.OK, Level.WARNING, Level.PROBLEM
CREDENTIAL = "0123456789abcdef0123456789abcdef"
OPEN, KEYED = AccessFacts(is_public=True), AccessFacts(is_public=True, num_keys=3, num_active=2)


def settings(**given: Any) -> Settings:
    """`auth__no_auth=True` and the like."""
    flags = {name.replace("__", "."): value for name, value in given.items()}
    return resolve(None, {}, flags, is_file_required=False).settings


FINDINGS: list[tuple[AccessFacts, dict[str, Any], int, Level, tuple[str, ...]]] = [
    (AccessFacts(), {}, 0, OK, ("none", "keys create")),
    (AccessFacts(), {"auth__no_auth": True}, 0, OK, ("none",)),
    (OPEN, {"server__host": "0.0.0.0"}, 0, PROBLEM, ("0.0.0.0", "keys create", "127.0.0.1", "--no-auth")),
    (OPEN, {"auth__no_auth": True}, 0, WARNING, ("--no-auth",)),
    (KEYED, {}, 0, WARNING, ("plain text", "tls.certificate_file")),
    (KEYED, {"tls__certificate_file": "x.pem"}, 0, OK, ("3", "2 of them active")),
    (replace(KEYED, is_public=False), {}, 0, OK, ("3",)),
    (replace(KEYED, num_active=0), {}, 0, WARNING, ("every request will be refused",)),
    (replace(KEYED, keys_fault="broken"), {}, 0, PROBLEM, ("broken",)),
    (replace(OPEN, keys_fault="broken"), {"auth__no_auth": True}, 0, PROBLEM, ("broken",)),
    (AccessFacts(), {}, 1, OK, ("no credential",)),
    (AccessFacts(is_admin_public=True), {"server__admin_host": "::"}, 1, PROBLEM, ("::", "auth.admin_token_file")),
    (AccessFacts(is_admin_public=True), {"auth__no_auth": True}, 1, PROBLEM, ("not on loopback",)),
    (AccessFacts(is_admin_public=True, num_keys=1, num_active=1), {}, 1, PROBLEM, ("not on loopback",)),
    (AccessFacts(is_admin_public=True, has_credential=True), {"auth__admin_token_file": "x"}, 1, OK, ("x",)),
    (AccessFacts(credential_fault="unreadable"), {}, 1, PROBLEM, ("unreadable", "umask 077")),
    (AccessFacts(has_token_variable=True), {}, 1, PROBLEM, ("TIDEGATE_ADMIN_TOKEN", "auth.admin_token_file")),
    (AccessFacts(has_token_variable=True, has_credential=True), {}, 1, OK, ()),
]


@pytest.mark.parametrize(("facts", "given", "index", "level", "words"), FINDINGS)
def test_what_is_said_of_the_two_listeners(
    facts: AccessFacts, given: dict[str, Any], index: int, level: Level, words: tuple[str, ...]
) -> None:
    findings = check_access(facts, settings(**given))
    assert [finding.subject for finding in findings] == ["keys", "admin"]
    assert findings[index].level is level
    assert level is OK or findings[index].advice
    for word in words:
        assert word in f"{findings[index].found} {findings[index].advice}"


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("127.0.0.1.invalid", False),
        ("", False),
    ],
)
def test_loopback_is_what_an_address_means_and_not_how_it_begins(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.parametrize(
    "flags",
    [("--host", "0.0.0.0"), ("--admin-host", "0.0.0.0"), ("--admin-host", "0.0.0.0", "--no-auth", "--host", "::")],
)
def test_serve_refuses_to_be_open_by_accident(tmp_path: Path, flags: tuple[str, ...]) -> None:
    arguments = ["serve", "--engine", "scripted", "--port", "0", "--admin-port", "0", "--state-dir", str(tmp_path)]
    result = CliRunner().invoke(cli, [*arguments, *flags], prog_name="tidegate")
    assert result.exit_code == 2
    assert "not" in result.output
    assert "loopback" in result.output


def test_saying_no_auth_or_having_a_key_is_enough_to_start(tmp_path: Path) -> None:
    given = {"server__host": "0.0.0.0", "server__state_dir": str(tmp_path)}
    with pytest.raises(AccessError, match="keys create"):
        refuse_exposure(settings(**given))
    [words] = refuse_exposure(settings(**given, auth__no_auth=True))
    assert "--no-auth" in words
    CliRunner().invoke(cli, ["keys", "create", "a", "--keys-file", str(tmp_path / "keys.db")])
    [words] = refuse_exposure(settings(**given))
    assert "plain text" in words


def test_facts_count_keys_and_look_for_the_variable(tmp_path: Path) -> None:
    at = settings(server__state_dir=str(tmp_path))
    assert gather_access_facts(at, {}) == AccessFacts()
    for name in ("a", "b"):
        CliRunner().invoke(cli, ["keys", "create", name, "--keys-file", str(tmp_path / "keys.db")])
    CliRunner().invoke(cli, ["keys", "revoke", "a", "--keys-file", str(tmp_path / "keys.db")])
    facts = gather_access_facts(at, {"TIDEGATE_ADMIN_TOKEN": "x"})
    assert (facts.num_keys, facts.num_active, facts.has_token_variable) == (2, 1, True)
    (tmp_path / "keys.db").chmod(0o606)
    fault = gather_access_facts(at, {}).keys_fault
    assert fault is not None
    assert "chmod 600" in fault
    with pytest.raises(AccessError, match="chmod 600"):
        open_access(at, ManualClock())


CREDENTIALS: list[tuple[bytes, int, str | None]] = [
    (CREDENTIAL.encode(), 0o600, None),
    (CREDENTIAL.encode() + b"\n", 0o400, None),
    (CREDENTIAL.encode() + b"\r\n", 0o640, None),
    (b"A" * 249, 0o440, None),
    (b"A" * 250, 0o600, "32 to 249"),
    (b"A" * 31, 0o600, "32 to 249"),
    (b"", 0o600, "32 to 249"),
    (b"A" * 9999, 0o600, "32 to 249"),
    (CREDENTIAL.encode() + b"\n\n", 0o600, "one line"),
    (CREDENTIAL.encode() + b"\nmore", 0o600, "one line"),
    (b" " + CREDENTIAL.encode(), 0o600, "one line"),
    (CREDENTIAL.encode() + b"\xff", 0o600, "one line"),
    (CREDENTIAL.encode(), 0o644, "chmod 600"),
    (CREDENTIAL.encode(), 0o620, "chmod 600"),
    (CREDENTIAL.encode(), 0o601, "chmod 600"),
]


@pytest.mark.parametrize(("content", "mode", "fault"), CREDENTIALS)
def test_the_file_of_the_admin_credential_is_checked(
    tmp_path: Path, content: bytes, mode: int, fault: str | None
) -> None:  # SEC-29
    file = tmp_path / "admin-token"
    file.write_bytes(content)
    file.chmod(mode)
    if fault is None:
        assert read_credential(file) == content.decode().rstrip()
        return
    with pytest.raises(AccessError, match=fault) as caught:
        read_credential(file)
    assert not content or content.decode("latin-1").strip() not in str(caught.value)


def test_a_credential_that_is_named_and_not_there_is_a_fault(tmp_path: Path) -> None:
    at = settings(auth__admin_token_file=str(tmp_path / "absent"))
    with pytest.raises(AccessError, match="cannot be read"):
        open_admin_access(at)
    with pytest.raises(AccessError, match="cannot be read"):
        refuse_exposure(at)
    assert open_admin_access(settings()) is allow_everyone


HOMES: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"server__state_dir": "/srv/tide"}, {"XDG_STATE_HOME": "/xdg"}, "/srv/tide"),
    ({}, {"XDG_STATE_HOME": "/xdg"}, "/xdg/tidegate"),
    ({}, {"XDG_STATE_HOME": "relative"}, "/home/someone/.local/state/tidegate"),
    ({}, {}, "/home/someone/.local/state/tidegate"),
    ({"server__state_dir": "~/tide"}, {}, "/home/someone/tide"),
]


@pytest.mark.parametrize(("given", "environment", "folder"), HOMES)
def test_where_state_lies(
    given: dict[str, Any], environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    at = settings(**given)
    assert str(locate_state_folder(at, environment)) == folder
    assert str(locate_keys_file(at, environment)) == f"{folder}/keys.db"
    assert str(locate_keys_file(settings(**given, auth__keys_file="/k.db"), environment)) == "/k.db"


def make_sticky(path: Path) -> None:
    path.mkdir()
    path.chmod(0o1777)


def make_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize(
    ("prepare", "fault"),
    [(None, None), (make_sticky, None), (make_open, "chmod 700"), (Path.touch, "cannot be made")],
)
def test_the_folder_is_made_for_this_user_alone(
    tmp_path: Path, prepare: Callable[[Path], None] | None, fault: str | None
) -> None:
    folder = tmp_path / "a" / "b"
    if prepare is None:
        assert make_private_folder(folder).stat().st_mode & 0o777 == 0o700
        return
    folder.parent.mkdir()
    prepare(folder)
    if fault is None:
        assert make_private_folder(folder) == folder
    else:
        with pytest.raises(StateFolderError, match=fault):
            make_private_folder(folder)
