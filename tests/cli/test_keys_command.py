"""`tidegate keys` as a person and as a script uses it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tidegate.cli.main import cli
from tidegate.cli.point_in_time import parse_instant, write_instant
from tidegate.http.app import make_public_app
from tidegate.http.public_routes import routes_behind_keys
from tidegate.lifecycle.key_text import digest_of
from tidegate.stores.sqlite_keys import SqliteKeys

KEY = re.compile(r"tg_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}")
FIELDS = [
    "id",
    "name",
    "state",
    "models",
    "routes",
    "priority_min",
    "priority_max",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "deadline_max_ms",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
]
WALL = 1_750_000_000.0


class Shell:
    """Runs `tidegate keys` on a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "state" / "tidegate" / "keys.db"
        self._environment: dict[str, str | None] = {"XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "110"}

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["keys", *arguments], env=self._environment, prog_name="tidegate")

    def json(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ("create", "list", "show", "revoke", "every route needs one", "KEY=$(", "/healthz")),
        (("create",), ("--route", "--expires", "90d", "--requests-per-minute", "-100 to 100", "--json", "never again")),
        (("list",), ("--all", "--json")),
        (("show",), ("ID|NAME", "but not the key")),
        (("revoke",), ("for good", "stays closed")),
    ],
)
def test_help_teaches(shell: Shell, command: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = shell.run(*command, "--help")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    for word in words:
        assert word in text


def test_a_key_is_shown_once_and_alone_on_standard_output(shell: Shell) -> None:
    result = shell.run("create", "mobile-app")
    assert result.exit_code == 0
    key = result.stdout.strip()
    assert KEY.fullmatch(key)
    assert "shown only now" in result.stderr
    assert "first one" in result.stderr
    assert "first one" not in shell.run("create", "other").stderr
    assert next(record.digest for record in SqliteKeys(shell.file).list_keys()) == digest_of(key)
    for arguments in (("list",), ("show", "mobile-app"), ("list", "--json"), ("show", "mobile-app", "--json")):
        output = shell.run(*arguments).output
        assert key not in output
        assert digest_of(key).hex() not in output


def test_files_and_folders_are_for_this_user_alone(shell: Shell) -> None:
    shell.run("create", "one")
    assert shell.file.stat().st_mode & 0o777 == 0o600
    assert shell.file.parent.stat().st_mode & 0o777 == 0o700


def test_everything_that_was_said_is_kept(shell: Shell) -> None:
    made = shell.json(
        *("create", "nightly", "--model", "b", "--model", "a", "--route", "/v1/models/{id}", "--expires", "90d"),
        *("--priority-min", "5", "--priority-max", "50", "--concurrency", "4", "--deadline-max-ms", "60000"),
        *("--requests-per-minute", "60", "--tokens-per-minute", "100000"),
    )
    assert list(made) == [*FIELDS, "key"]
    assert KEY.fullmatch(made.pop("key"))
    assert shell.json("show", "nightly") == shell.json("show", made["id"]) == made
    assert made["models"] == ["a", "b"]
    assert made["routes"] == ["/v1/models/{id}"]
    assert [made[name] for name in FIELDS[5:11]] == [5, 50, 4, 60, 100000, 60000]
    assert parse_instant(made["expires_at"], 0) - parse_instant(made["created_at"], 0) in range(90 * 86400 - 1, 7776002)
    text = shell.run("list").output + shell.run("show", "nightly").output
    for word in ("nightly", made["id"], "a, b", "/v1/models/{id}", "5 to 50", "4 at once", "60 requests/min", "active"):
        assert word in text


def test_a_key_without_restrictions_says_so(shell: Shell) -> None:
    made = shell.json("create", "plain")
    assert {name: made[name] for name in FIELDS[3:11]} == {
        **dict.fromkeys(FIELDS[3:11]),
        "priority_min": -100,
        "priority_max": 100,
    }
    assert made["expires_at"] is made["revoked_at"] is made["last_used_at"] is None
    assert "everything" in shell.run("list").output


def test_a_revoked_key_is_listed_with_all_and_its_name_is_free(shell: Shell) -> None:
    first = shell.json("create", "same")["id"]
    assert "first, or choose another name" in shell.run("create", "same").output
    assert shell.json("revoke", "same")["state"] == "revoked"
    assert shell.run("revoke", first).exit_code == 2
    assert "1 revoked" in shell.run("list").output
    second = shell.json("create", "same")["id"]
    assert [one["id"] for one in shell.json("list")] == [second]
    assert [one["id"] for one in shell.json("list", "--all")] == [first, second]
    assert shell.json("show", "same")["id"] == second
    assert "is revoked" in shell.run("revoke", second).output
    assert shell.json("show", "same")["id"] == second


def test_no_key_is_no_error(shell: Shell) -> None:
    result = shell.run("list")
    assert (result.exit_code, "keys create NAME" in result.output) == (0, True)
    assert shell.json("list") == []
    assert not shell.file.parent.exists()


MISTAKES: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("create", "two words"), ("NAME", "1 to 64")),
    (("create", "n" * 65), ("NAME", "1 to 64")),
    (("create", "key_x"), ("NAME", "key_")),
    (("create", "sk-abcdefgh12"), ("NAME", "logs would hide it")),
    (("create", "a", "--concurrency", "0"), ("--concurrency", "0 is not in the range 1 to 1000000")),
    (("create", "a", "--concurrency", "x"), ("--concurrency", "integer")),
    (("create", "a", "--requests-per-minute", "-1"), ("--requests-per-minute", "range 1 to")),
    (("create", "a", "--tokens-per-minute", "0"), ("--tokens-per-minute", "range 1 to")),
    (("create", "a", "--deadline-max-ms", "0"), ("--deadline-max-ms", "range 1 to")),
    (("create", "a", "--priority-min", "-101"), ("--priority-min", "range -100 to 100")),
    (("create", "a", "--priority-min", "9", "--priority-max", "8"), ("--priority-max", "least priority, 9")),
    (("create", "a", "--route", "/v1/modles"), ("--route", "/v1/models/{id}")),
    (("create", "a", "--route", "/healthz"), ("--route", "no route that needs a key")),
    (("create", "a", "--model", ""), ("--model", "1 to 256")),
    (("create", "a", "--expires", "soon"), ("--expires", "90d")),
    (("create", "a", "--expires", "2020-01-01"), ("--expires", "after now")),
    (("create", "a", "--expires", "9999d"), ("--expires", "3650 days")),
    (("show", "nobody"), ("no key", "--all")),
    (("revoke", "nobody"), ("no key", "--all")),
    (("create", "a", "--config", "/no/such/file.toml"), ("does not exist",)),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_mistakes_name_the_field_and_its_range(
    shell: Shell, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = shell.run(*arguments)
    assert result.exit_code == 2
    text = " ".join(result.output.split())
    for word in words:
        assert word in text
    assert not shell.file.exists()


def test_a_file_that_cannot_be_used_ends_with_status_1(shell: Shell, tmp_path: Path) -> None:
    shell.file.parent.mkdir(parents=True)
    shell.file.write_text("no database, but text that is longer than the head of one" * 9)
    shell.file.chmod(0o600)
    for arguments in (("list",), ("create", "a"), ("show", "a")):
        result = shell.run(*arguments)
        assert result.exit_code == 1
        assert "cannot be used as a file of keys" in result.stderr
    taken = tmp_path / "file"
    taken.touch()
    assert shell.run("create", "a", "--keys-file", str(taken / "keys.db")).exit_code == 1


def test_the_file_of_keys_can_be_named(shell: Shell, tmp_path: Path) -> None:
    shell.run("create", "a", "--keys-file", str(tmp_path / "here" / "my.db"))
    settings = tmp_path / "tidegate.toml"
    settings.write_text(f'[auth]\nkeys_file = "{tmp_path}/here/my.db"\n', "utf-8")
    assert [one["name"] for one in shell.json("list", "--config", str(settings))] == ["a"]
    assert shell.json("list") == []


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("30m", WALL + 1800),
        ("12h", WALL + 43200),
        ("90d", WALL + 7776000),
        ("4w", WALL + 2419200),
        ("2030-12-31", 1924905600.0),
        ("2030-12-31T18:00Z", 1924970400.0),
        ("2030-12-31T18:00+02:00", 1924963200.0),
    ],
)
def test_instants_are_spans_and_dates(text: str, instant: float) -> None:
    assert parse_instant(text, WALL) == instant


@pytest.mark.parametrize("text", ["", "1", "d", "-1d", "1.5d", "1y", "9999999d", "2030-13-01", "tomorrow"])
def test_other_words_are_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        parse_instant(text, WALL)


def test_instants_are_written_in_utc() -> None:
    assert write_instant(1924970400.9) == "2030-12-31T18:00:00Z"
    assert write_instant(None) is None


class NoService:
    def __getattr__(self, name: str) -> Any:
        return None


def test_the_routes_that_keys_may_name_are_those_of_the_server() -> None:
    patterns = set(make_public_app(NoService()).router.patterns)  # type: ignore[arg-type]
    assert routes_behind_keys() == patterns - {"/healthz", "/health"}
