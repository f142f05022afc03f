"""What a Serve configuration may say, and how long a replica may be without an engine."""

from pathlib import Path
from typing import Any

import pytest

from harness.keys import add_key
from tidegate.cli.settings_sources import SettingsError
from tidegate.serve_app.arguments import read_arguments
from tidegate.serve_app.patience import DEFAULT_S, Patience, UserConfigError


@pytest.fixture
def closed(tmp_path: Path) -> dict[str, str]:
    """An environment whose state folder holds a key: Serve may listen on every address."""
    add_key(tmp_path, "one")
    return {"TIDEGATE_SERVER__STATE_DIR": str(tmp_path)}


def test_arguments_are_stronger_than_the_file_and_the_environment(closed: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text("[engine]\nmax_sequences = 3\nblock_tokens = 8\n[server]\nadmin_port = 9999\n")
    args = {"config_file": str(file), "settings": {"engine": {"max_sequences": 5}}}
    settings, warnings = read_arguments(args, {**closed, "TIDEGATE_ENGINE__MAX_SEQUENCES": "4"})
    assert (settings.engine.max_sequences, settings.engine.block_tokens, settings.server.admin_port) == (5, 8, 9999)
    assert not [words for words in warnings if "effect" in words]


def test_replicas_on_one_node_do_not_ask_for_one_admin_port(closed: dict[str, str]) -> None:
    assert read_arguments({}, closed)[0].server.admin_port == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"setings": {}}, "no argument setings"),
        ({"config_file": 5}, "args.config_file must be the path"),
        ({"config_file": "/nowhere/tidegate.toml"}, "does not exist"),
        ({"settings": []}, "args.settings must be tables"),
        ({"settings": {"engin": {}}}, "args.settings.engin is no table"),
        ({"settings": {"engine": 5}}, "args.settings.engine is no table"),
        ({"settings": {"engine": {"sequences": 5}}}, "no setting engine.sequences"),
        (
            {"settings": {"engine": {"max_sequences": 0}}},
            "engine.max_sequences from args.settings.engine.max_sequences",
        ),
        ({"settings": {"server": {"workers": 2}}}, "num_replicas"),
        ({"settings": {"tls": {"certificate_file": "a.pem"}}}, "http_options"),
        ({"settings": {"tls": {"key_file": "a.pem"}}}, "http_options"),
    ],
)
def test_a_wrong_argument_is_named(closed: dict[str, str], args: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_arguments(args, closed)


@pytest.mark.parametrize("key", ["host", "port", "http", "send_buffer_bytes", "unsent_bytes"])
def test_settings_of_the_listener_are_said_to_have_no_effect(closed: dict[str, str], key: str) -> None:
    value: Any = {"host": "127.0.0.1", "http": "uvicorn"}.get(key, 8000)
    _, warnings = read_arguments({"settings": {"server": {key: value}}}, closed)
    assert any(f"server.{key}" in words for words in warnings)


def test_without_keys_nothing_is_served_to_everybody_by_accident(tmp_path: Path) -> None:
    environment = {"TIDEGATE_SERVER__STATE_DIR": str(tmp_path)}
    with pytest.raises(SettingsError, match="no key"):
        read_arguments({}, environment)
    assert read_arguments({"settings": {"auth": {"no_auth": True}}}, environment)[0].auth.no_auth


def test_patience_ends_only_when_the_engine_is_away_for_long() -> None:
    patience = Patience()
    looks = [(True, 0.0), (False, 1.0), (False, DEFAULT_S), (True, DEFAULT_S + 1), (False, 500.0), (False, 621.0)]
    assert [patience.is_over(is_ready=ready, now=now) for ready, now in looks] == [False] * 5 + [True]


def test_user_config_changes_the_patience_while_it_runs() -> None:
    patience = Patience()
    assert not patience.is_over(is_ready=False, now=0.0)
    patience.reconfigure({"unready_patience_s": 5})
    assert patience.is_over(is_ready=False, now=6.0)
    patience.reconfigure({})
    assert patience.patience_s == DEFAULT_S


@pytest.mark.parametrize(
    ("user_config", "words"),
    [
        (5, "must be a table"),
        ({"engine": {}}, "no engine in user_config"),
        ({"unready_patience_s": "5"}, "number of seconds"),
        ({"unready_patience_s": True}, "number of seconds"),
        ({"unready_patience_s": 0}, "1 to 86400"),
        ({"unready_patience_s": 1e9}, "1 to 86400"),
    ],
)
def test_a_wrong_user_config_is_named_and_changes_nothing(user_config: object, words: str) -> None:
    patience = Patience()
    patience.reconfigure({"unready_patience_s": 7})
    with pytest.raises(UserConfigError, match=words):
        patience.reconfigure(user_config)
    assert patience.patience_s == 7.0
