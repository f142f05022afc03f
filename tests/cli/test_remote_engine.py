"""Settings of an engine on another machine: what leads nowhere is said before anything is started."""

from pathlib import Path
from typing import Any

import pytest

from harness.byte_folder import write_byte_folder
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import load_model
from tidegate.cli.remote_engine import PROBES, remote_endpoint, served_facts
from tidegate.cli.remote_settings import idle_settings, idle_text, is_remote
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve

URL = {"engine.url": "http://127.0.0.1:9"}


def settings_of(kind: str = "vllm-http", **flags: Any) -> Settings:
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return resolve(None, {}, {"engine.kind": kind, **named}, is_file_required=False).settings


BAD: dict[str, tuple[dict[str, str], str]] = {
    "no address": ({"model.tokenizer": "GOOD"}, "engine.url must say where the vllm-http engine is"),
    "no URL": ({"engine.url": "engine:8000", "model.tokenizer": "GOOD"}, "engine.url cannot be used"),
    "no tokenizer": (URL, "model.tokenizer must name the folder"),
    "no such folder": ({**URL, "model.tokenizer": "EMPTY/absent"}, "cannot be used"),
    "an empty folder": ({**URL, "model.tokenizer": "EMPTY"}, "cannot be used"),
    "no key": (
        {**URL, "model.tokenizer": "GOOD", "engine.api_key_file": "EMPTY/absent"},
        "api_key_file .* cannot be read",
    ),
    "a key of two words": ({**URL, "model.tokenizer": "GOOD", "engine.api_key_file": "WORDS"}, "API key"),
    "no end token": ({**URL, "model.tokenizer": "ENDLESS"}, "has no end token"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_settings_that_lead_nowhere_say_what_to_do(case: tuple[dict[str, str], str], tmp_path: Path) -> None:
    flags, words = case
    good = write_byte_folder(tmp_path / "good")
    endless = write_byte_folder(tmp_path / "endless")
    (endless / "tokenizer_config.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "words").write_text("two words")
    places = {"GOOD": good, "ENDLESS": endless, "EMPTY": tmp_path / "empty", "WORDS": tmp_path / "words"}
    for word, place in places.items():
        flags = {name: value.replace(word, str(place)) for name, value in flags.items()}
    with pytest.raises(LoadError, match=words):
        load_model(settings_of(**{name.replace(".", "__"): value for name, value in flags.items()}))


def test_a_key_is_read_without_its_line_break(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    settings = settings_of(engine__url="http://h:1", engine__api_key_file=str(tmp_path / "key"))
    assert remote_endpoint(settings).api_key == "s3cret"


@pytest.mark.parametrize("kind", ["llama", "scripted", "simulated", "sglang", "vllm-http"])
def test_two_kinds_run_elsewhere(kind: str) -> None:
    assert is_remote(settings_of(kind)) == (kind in ("sglang", "vllm-http"))


def test_the_folder_gives_tokens_template_and_name(tmp_path: Path) -> None:
    folder = write_byte_folder(tmp_path / "my-model", vocab_size=300)
    settings = settings_of(engine__url="http://h:1", model__tokenizer=str(folder), engine__revision="r1")
    loaded = load_model(settings)
    assert loaded.served.name == "my-model"
    assert loaded.grammar.compiler is not None
    facts = served_facts(settings, loaded.served, has_compiler=True)
    assert (facts.vocab_size, facts.eos_token_ids, facts.last_token_id) == (300, (257,), 299)
    assert (facts.model_name, facts.revision, facts.max_sequences) == (None, "r1", 32)
    assert facts.grammars is not None
    assert [text for text, _ in facts.probes] == list(PROBES)
    assert all(bytes(ids).decode() == text for text, ids in facts.probes)
    assert served_facts(settings, loaded.served, has_compiler=False).grammars is None


def test_the_models_name_in_the_engine_is_the_served_one(tmp_path: Path) -> None:
    folder = write_byte_folder(tmp_path)
    settings = settings_of(engine__url="http://h:1", model__tokenizer=str(folder), model__source="org/model")
    assert load_model(settings).served.name == "org/model"


ELSEWHERE = {"engine__url": "http://h", "model__tokenizer": "."}
IDLE: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "plain": ("vllm-http", {}, []),
    "of our own process": ("sglang", {"engine__threads": 4, "engine__repeatable": True}, ["threads", "repeatable"]),
    "of both": ("sglang", {"engine__max_sequences": 64, "engine__stall_timeout_s": 5.0}, []),
    "of another machine": ("llama", ELSEWHERE, ["url", "tokenizer"]),
    "acting there": ("vllm-http", ELSEWHERE, []),
}


@pytest.mark.parametrize("case", IDLE.values(), ids=IDLE)
def test_settings_without_an_effect_are_named(case: tuple[str, dict[str, Any], list[str]]) -> None:
    kind, flags, names = case
    settings = settings_of(kind, **flags)
    assert sorted(name.partition(".")[2] for name in idle_settings(settings)) == sorted(names)
    assert (idle_text(settings) is None) == (not names)
