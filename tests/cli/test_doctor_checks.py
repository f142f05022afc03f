"""The doctor's checks on made-up facts: which level each state of a machine gets, and what to do about it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.cli.check_machine import (
    FolderFacts,
    check_descriptors,
    check_engine_options,
    check_folder,
    check_listener,
    check_processors,
)
from tidegate.cli.check_model import ModelFileFacts, check_memory, check_model_file, check_template, check_weight_type
from tidegate.cli.check_software import LlamaProbe, check_libraries, check_llama, check_python, least_versions
from tidegate.cli.finding import Finding, Level
from tidegate.cli.settings import SECTIONS, Settings
from tidegate.sizing.gguf_header import GgufHeader

OK, WARNING, PROBLEM = Level.OK, Level.WARNING, Level.PROBLEM


def settings(**given: Any) -> Settings:
    """`engine__kind="scripted"` and the like."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        section, _, key = name.partition("__")
        sections.setdefault(section, {})[key] = value
    return msgspec.structs.replace(Settings(), **{name: SECTIONS[name](**part) for name, part in sections.items()})


def assert_advises(finding: Finding, level: Level, *words: str) -> None:
    assert finding.level is level
    assert finding.level is OK or finding.advice
    for word in words:
        assert word in f"{finding.found} {finding.advice}"


@pytest.mark.parametrize(
    ("version", "platform", "level"),
    [
        ((3, 11, 0), "linux", OK),
        ((3, 14, 1), "darwin", OK),
        ((3, 10, 9), "linux", PROBLEM),
        ((3, 12, 0), "win32", PROBLEM),
    ],
)
def test_python_and_system(version: tuple[int, int, int], platform: str, level: Level) -> None:
    assert_advises(check_python(version, platform), level, platform)


def test_least_versions_come_from_the_packages_requirements() -> None:
    lines = ["jinja2>=3.1.6", 'uvloop>=0.21; sys_platform != "win32"', 'mypy; extra == "dev"', 'x>=1; extra == "dev"']
    assert least_versions(lines) == {"jinja2": "3.1.6", "uvloop": "0.21"}


LIBRARIES: list[tuple[dict[str, str | None], dict[str, Any], Level | None, str]] = [
    ({"jinja2": "3.1.6"}, {}, None, ""),
    ({"jinja2": "3.2"}, {}, None, ""),
    ({"jinja2": "4.0.0rc1"}, {}, None, ""),
    ({"jinja2": "3.1.5"}, {}, PROBLEM, "3.1.5 is older than 3.1.6"),
    ({"jinja2": None}, {}, PROBLEM, "pip install 'jinja2>=3.1.6'"),
    ({"llama-cpp-python": None}, {}, PROBLEM, "not installed"),
    ({"llama-cpp-python": None}, {"engine__kind": "scripted"}, WARNING, "do without"),
    ({"granian": None}, {}, PROBLEM, "not installed"),
    ({"granian": None}, {"server__http": "uvicorn"}, WARNING, "do without"),
    ({"uvicorn": None}, {}, WARNING, "do without"),
    ({"uvicorn": None}, {"server__http": "uvicorn"}, PROBLEM, "not installed"),
]


@pytest.mark.parametrize(("change", "given", "level", "words"), LIBRARIES)
def test_libraries(change: dict[str, str | None], given: dict[str, Any], level: Level | None, words: str) -> None:
    least = {"jinja2": "3.1.6", "llama-cpp-python": "0.3.36", "granian": "2.8", "uvicorn": "0.38"}
    installed: dict[str, str | None] = {**least, **change}
    first, *others = check_libraries(least, installed, settings(**given))
    assert first.level is OK
    assert "llama-cpp-python 0.3.36" in first.found or "llama-cpp-python" in change
    if level is None:
        assert others == []
    else:
        assert [finding.level for finding in others] == [level]
        assert_advises(others[0], level, words)


AVX2 = frozenset({"avx2", "fma", "f16c"})
FULL = LlamaProbe(0, features="CPU : AVX2 = 1 | FMA = 1 | F16C = 1 | ")
PROBES: list[tuple[LlamaProbe, frozenset[str], dict[str, Any], Level, str]] = [
    (FULL, AVX2, {}, OK, "CPU only"),
    (FULL, frozenset(), {}, OK, "CPU only"),
    (replace(FULL, has_gpu=True), AVX2, {"engine__gpu_layers": 9}, OK, "GPU and CPU"),
    (FULL, AVX2, {"engine__gpu_layers": 9}, PROBLEM, "GGML_CUDA"),
    (LlamaProbe(0, features="CPU : SSE3 = 1"), AVX2, {}, WARNING, "AVX2, FMA, F16C"),
    (LlamaProbe(-4), AVX2, {}, PROBLEM, "instructions that this processor does not have"),
    (LlamaProbe(1, "ImportError: no libgomp.so.1"), AVX2, {}, PROBLEM, "libgomp"),
]


@pytest.mark.parametrize(("probe", "features", "given", "level", "words"), PROBES)
def test_llama_cpp(
    probe: LlamaProbe, features: frozenset[str], given: dict[str, Any], level: Level, words: str
) -> None:
    assert_advises(check_llama(probe, features, settings(**given))[-1], level, words)


HEADER = GgufHeader(
    version=3,
    metadata={
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "llama.context_length": 8192,
        "llama.block_count": 10,
        "llama.embedding_length": 100,
        "llama.attention.head_count": 10,
    },
    array_lengths={"tokenizer.ggml.tokens": 0},
    tensor_bytes={"Q4_1": 900, "F32": 100},
    needed_bytes=1000,
)
FILE = ModelFileFacts(Path("m.gguf"), "file", 1000, HEADER)
FILES: list[tuple[ModelFileFacts, Level, str]] = [
    (FILE, OK, "llama, mostly Q4_1, 0 MB, context 8,192 tokens"),
    (replace(FILE, num_bytes=999), PROBLEM, "cut off: 999 bytes of 1,000"),
    (replace(FILE, header=None, fault="it does not begin with the letters GGUF"), PROBLEM, "Git LFS pointer"),
    (replace(FILE, missing=("m-00002-of-00002.gguf",)), PROBLEM, "m-00002-of-00002.gguf"),
    (replace(FILE, header=replace(HEADER, metadata={})), PROBLEM, "no vocabulary"),
]


@pytest.mark.parametrize(("facts", "level", "words"), FILES)
def test_model_file(facts: ModelFileFacts, level: Level, words: str) -> None:
    assert_advises(check_model_file(facts), level, "m.gguf", words)


TEMPLATES: list[tuple[str | None, dict[str, Any], str | None, Level, str]] = [
    ("{{ x }}", {}, None, OK, "the model's own"),
    (None, {}, None, WARNING, "--chat-template"),
    (None, {"model__chat_template": "t.jinja"}, None, OK, "t.jinja"),
    ("{% x", {}, "The chat template cannot be used: line 1", PROBLEM, "line 1"),
]


@pytest.mark.parametrize(("template", "given", "fault", "level", "words"), TEMPLATES)
def test_chat_template(
    template: str | None, given: dict[str, Any], fault: str | None, level: Level, words: str
) -> None:
    assert_advises(check_template(template, settings(**given), fault), level, words)


def test_weights_that_are_read_slowly_get_a_hint_and_no_warning() -> None:
    hint = check_weight_type(HEADER, settings(), has_gpu=False)
    assert hint is not None
    assert_advises(hint, OK, "Q4_1", "Q4_0 or Q8_0")
    assert check_weight_type(replace(HEADER, tensor_bytes={"Q4_0": 1}), settings(), has_gpu=False) is None
    assert check_weight_type(HEADER, settings(), has_gpu=True) is None
    assert check_weight_type(HEADER, settings(engine__gpu_layers=0), has_gpu=True) is not None


# A token takes 10 layers x 2 x 100 values x 2 bytes = 4,000 bytes; a sequence has 4,096 tokens.
CACHE_BYTES = 4096 * 4000
PLENTY = 100 * 32 * CACHE_BYTES
MEMORY: list[tuple[int | None, dict[str, Any], Level, str]] = [
    (1000, {}, PROBLEM, "not even 256 tokens of cache fit"),
    (2 * CACHE_BYTES, {"model__max_model_len": 8192, "engine__num_blocks": 512}, PROBLEM, "for a cache of 8192 tokens"),
    (2 * 32 * CACHE_BYTES, {}, OK, "cache 500 MiB = 131072 tokens x 4000 bytes"),
    (32 * CACHE_BYTES, {}, WARNING, "share what there is"),
    (
        CACHE_BYTES + 4_000_000,
        {"engine__max_sequences": 1, "engine__num_blocks": 256},
        WARNING,
        "no room to read texts",
    ),
    (PLENTY, {"engine__embeddings": "off"}, OK, "at most 4096 tokens each"),
    (PLENTY, {"engine__pooling": "rank"}, PROBLEM, "no classification head"),
    (None, {}, OK, "cannot be read"),
]


@pytest.mark.parametrize(("available", "given", "level", "words"), MEMORY, ids=range(len(MEMORY)))
def test_memory(available: int | None, given: dict[str, Any], level: Level, words: str) -> None:
    assert_advises(check_memory(FILE, settings(**given), available, has_gpu=False), level, words)


def test_memory_counts_what_is_kept_free_for_reading() -> None:
    told = [check_memory(FILE, settings(engine__embeddings=choice), PLENTY, has_gpu=False) for choice in ("on", "off")]
    assert ["embeddings" in finding.found for finding in told] == [True, False]


@pytest.mark.parametrize(("gpu_layers", "words"), [(None, "on the GPU is not estimated"), (0, "MiB free")])
def test_memory_of_a_gpu_is_not_held_against_the_machines(gpu_layers: int | None, words: str) -> None:
    finding = check_memory(FILE, settings(engine__gpu_layers=gpu_layers), PLENTY, has_gpu=True)
    assert_advises(finding, OK, words)


def test_listeners() -> None:
    assert_advises(check_listener("public", "127.0.0.1", 8000, None), OK, "127.0.0.1:8000 is free")
    assert_advises(check_listener("public", "127.0.0.1", 0, None), OK, "a free port")
    taken = check_listener("admin", "127.0.0.1", 9464, "cannot listen on 127.0.0.1:9464: the port is taken")
    assert_advises(taken, PROBLEM, "the port is taken", "--admin-port 9465")


def test_processors_and_open_files() -> None:
    assert_advises(check_processors(4, settings()), OK, "4 usable, 4 threads")
    assert_advises(check_processors(4, settings(engine__threads=4)), OK, "4 threads")
    assert_advises(check_processors(4, settings(engine__threads=5)), WARNING, "4 or less")
    assert_advises(check_descriptors(None, settings()), OK, "no limit")
    assert_advises(check_descriptors(1024, settings()), OK, "1024")
    assert_advises(check_descriptors(351, settings()), WARNING, "288 requests", "ulimit -n 4096")


def test_runtime_folder() -> None:
    folder = FolderFacts(Path("/tmp"), is_writable=True, free_bytes=10**9)
    assert_advises(check_folder(folder), OK, "/tmp, 1.0 GB left")
    assert_advises(check_folder(replace(folder, is_writable=False)), PROBLEM, "cannot be written", "TMPDIR")
    assert_advises(check_folder(replace(folder, path=Path("/" + "x" * 90))), PROBLEM, "too long")
    assert_advises(check_folder(replace(folder, free_bytes=1000)), WARNING, "free some space")
    assert_advises(check_folder(replace(folder, free_bytes=None)), OK, "/tmp")


def test_engine_options() -> None:
    assert_advises(check_engine_options(settings(), None), OK, "engine llama, 32 sequences")
    refused = check_engine_options(settings(), "max_step_tokens (8) must be at least max_sequences (32)")
    assert_advises(refused, PROBLEM, "max_step_tokens", "tidegate config")
