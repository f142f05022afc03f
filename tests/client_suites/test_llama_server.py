"""Options of llama.cpp's server to ours (scripts/llama_server.py), and which of its tests must fail."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from llama_cpp_suite_exceptions import OTHER_TOKENIZER, TEI, reason_of
from llama_server import Surroundings, UnknownOptionError, command_of, read_options

sys.path.pop(0)

HERE = Surroundings({"bert.gguf": "/models/minilm.gguf"}, ("other",), "/state")
BASE = ["--port", "8123", "--hf-file", "bert.gguf"]


def told(*options: str) -> tuple[list[str], dict[str, str]]:
    return command_of(read_options([*BASE, *options]), HERE)


def test_a_context_is_shared_by_slots_and_a_sequence_has_one_slot() -> None:
    arguments, _ = told("--ctx-size", "512", "--parallel", "2")
    assert arguments[arguments.index("--max-model-len") + 1] == "256"
    assert arguments[arguments.index("--max-sequences") + 1] == "2"


def test_the_server_has_the_tests_port_the_named_file_and_all_names() -> None:
    arguments, settings = told("--alias", "bge", "--no-slots", "--no-jinja", "--seed", "42", "--temp", "0.8")
    assert arguments[:2] == ["serve", "/models/minilm.gguf"]
    assert arguments[arguments.index("--port") + 1] == "8123"
    assert [arguments[i + 1] for i, part in enumerate(arguments) if part == "--served-model-name"] == ["bge", "other"]
    assert "TIDEGATE_ENGINE__EMBEDDINGS" not in settings


@pytest.mark.parametrize(
    ("options", "setting", "value"),
    [
        (("--embedding",), "EMBEDDINGS", "on"),
        (("--reranking",), "EMBEDDINGS", "on"),
        (("--pooling", "last"), "POOLING", "last"),
        (("-fa", "on"), "FLASH_ATTENTION", "on"),
        (("--batch-size", "128"), "MAX_STEP_TOKENS", "128"),
    ],
)
def test_options_become_settings(options: tuple[str, ...], setting: str, value: str) -> None:
    assert told(*options)[1][f"TIDEGATE_ENGINE__{setting}"] == value


@pytest.mark.parametrize("options", [["--slots"], [*BASE, "--mlock"], ["--hf-file", "unknown.gguf"]])
def test_what_nobody_has_decided_about_is_refused(options: list[str]) -> None:
    with pytest.raises(UnknownOptionError):
        command_of(read_options(options), HERE)


@pytest.mark.parametrize(
    ("name", "has_head", "reason"),
    [
        ("test_rerank", False, None),
        ("test_rerank_tei_format", True, TEI),
        ("test_rerank_usage[a-b-c-19]", False, OTHER_TOKENIZER),
        ("test_rerank_top_n[2-2]", True, None),
        ("test_embedding_single", False, None),
    ],
)
def test_a_test_must_fail_for_a_reason_or_must_pass(name: str, has_head: bool, reason: str | None) -> None:
    assert reason_of(name, has_head=has_head) == reason


def test_an_order_is_asked_of_a_trained_model_only() -> None:
    assert reason_of("test_rerank", has_head=True) is not None
