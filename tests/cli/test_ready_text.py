"""The curl line of the ready text works when pasted, whatever the model is called."""

import json
import shlex
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tidegate.cli.check_machine import check_engine_options
from tidegate.cli.model_loading import LoadedModel, load_model
from tidegate.cli.ready_text import memory_text, ready_text, starting_text
from tidegate.cli.settings import EngineSettings, Settings
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo, PoolingMode

NAMES = ["plain", "it's", "a'b''c", 'say "hi"', "$(touch x) `id` \\ !", "名前 \U0001f30a", "line\nbreak"]


def loaded_as(engine: str, name: str) -> tuple[Settings, LoadedModel]:
    settings = Settings(engine=EngineSettings(kind="scripted" if engine == "scripted" else "simulated"))
    loaded = load_model(settings)
    return settings, LoadedModel(replace(loaded.served, names=(name,)), None)


def pasted(text: str) -> tuple[list[str], dict[str, Any]]:
    """Returns what a POSIX shell makes of the curl line, and its body."""
    line = text[text.index("  curl ") :]
    words = shlex.split(line)
    return words, json.loads(words[words.index("-d") + 1])


@pytest.mark.parametrize("engine", ["scripted", "simulated"])
@pytest.mark.parametrize("name", NAMES)
def test_a_shell_passes_on_exactly_the_json_that_names_the_model(engine: str, name: str) -> None:
    settings, loaded = loaded_as(engine, name)
    words, body = pasted(ready_text(settings, loaded, "http://127.0.0.1:8000", "http://127.0.0.1:9464"))
    assert words[0] == "curl"
    assert words[2] == "http://127.0.0.1:8000/v1/chat/completions"
    assert "Content-Type: application/json" in words
    assert words[-2:] == ["-d", words[-1]]
    assert body["model"] == name
    assert body["stream"] is True


def test_the_line_sends_a_key_where_one_is_needed() -> None:
    settings, loaded = loaded_as("scripted", "scripted")
    words, body = pasted(ready_text(settings, loaded, "http://h:1", "http://h:2", needs_key=True))
    assert "Authorization: Bearer $KEY" in words
    assert body["model"] == "scripted"


def test_the_scripted_engine_gets_a_script_to_play() -> None:
    settings, loaded = loaded_as("scripted", "scripted")
    _, body = pasted(ready_text(settings, loaded, "http://h:1", "http://h:2"))
    assert b"".join(bytes.fromhex(piece) for piece in body["x_script"]["pieces"]).decode() == "Hello, sea"


READERS = [((), "/v1/embeddings"), (("no", "yes"), "/v1/classify")]


@pytest.mark.parametrize(("labels", "path"), READERS, ids=range(len(READERS)))
def test_a_model_that_only_reads_is_asked_for_a_vector_or_a_class(labels: tuple[str, ...], path: str) -> None:
    settings, loaded = loaded_as("simulated", "reader")
    pooling = PoolingInfo(PoolingMode.RANK if labels else PoolingMode.MEAN, 4, 8, labels)
    model = ModelInfo(258, 8, (257,), 1, 1, 16, "ab", "by hand", generates=False, pooling=pooling)
    words, body = pasted(ready_text(settings, loaded, "http://h:1", "http://h:2", model=model))
    assert words[2] == f"http://h:1{path}"
    assert body == {"model": "reader", "input": "The sea is salty."}


def test_the_budget_of_memory_is_told_where_there_is_one() -> None:
    model = ModelInfo(258, 8, (257,), 1, 1, 16, "ab", "by hand", memory="weights 1 MiB\ntotal 2 MiB")
    assert memory_text(model) == "tidegate: memory of the engine\n  weights 1 MiB\n  total 2 MiB"
    assert memory_text(msgspec.structs.replace(model, memory=None)) is None
    assert memory_text(None) is None


def test_both_addresses_are_told() -> None:
    settings, loaded = loaded_as("simulated", "simulated")
    first = ready_text(settings, loaded, "http://h:1", "http://h:2").splitlines()[0]
    assert "http://h:1" in first
    assert "http://h:2" in first
    first = starting_text(settings, loaded).splitlines()
    assert first[0] == "tidegate: starting the simulated engine"
    assert [line.split(" (")[0] for line in first[1:]] == ["tidegate: tool calls: json", "tidegate: reasoning: none"]


@pytest.mark.parametrize(
    ("kind", "speculative", "said"),
    [
        ("simulated", "prompt_lookup", ", guessing up to 7 tokens ahead (prompt_lookup)"),
        ("simulated", "off", ""),
        ("scripted", "prompt_lookup", ""),
    ],
)
def test_the_first_line_says_when_tokens_are_guessed(kind: Any, speculative: Any, said: str) -> None:
    engine = EngineSettings(kind=kind, speculative=speculative, max_draft_tokens=7)
    settings = Settings(engine=engine)
    assert (
        starting_text(settings, load_model(settings)).splitlines()[0] == f"tidegate: starting the {kind} engine{said}"
    )
    found = check_engine_options(settings, None)
    assert found.found.endswith(said or "at once")


@pytest.mark.parametrize(
    ("kind", "speculative", "is_repeatable", "is_said"),
    [
        ("llama", "prompt_lookup", False, True),
        ("llama", "prompt_lookup", True, False),
        ("llama", "off", False, False),
        ("simulated", "prompt_lookup", False, False),
    ],
)
def test_guesses_that_may_change_the_text_are_told_at_the_start(
    kind: Any, speculative: Any, is_repeatable: bool, is_said: bool
) -> None:
    settings = Settings(engine=EngineSettings(kind=kind, speculative=speculative, repeatable=is_repeatable))
    _, loaded = loaded_as("simulated", "simulated")
    for said in (starting_text(settings, loaded), check_engine_options(settings, None).found):
        assert ("engine.repeatable = true makes both the same" in said) == is_said
