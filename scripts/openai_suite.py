"""Runs openai-python's own API tests (chat, completions, embeddings, models) against a Tidegate of ours.

The tests lie in the client's source package, which is fetched from the package index by name, checked against a known
digest, and unpacked under `build/`. They run in an environment of their own. Which of them are refused on purpose, and
why, is in `openai_suite_exceptions.py`.
"""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foreign_tests import ROOT, SourcePackage, fetch_source, free_port, make_environment, run, say

BUILD = ROOT / "build" / "openai-suite"
REQUIREMENTS = ROOT / "requirements" / "openai-suite.lock"
CLIENT = SourcePackage("openai", "3.57.0", "openai", "5a0a89d6a542efc85e2a8cec701ca9265b795d578c777828e10fafdf80e333b6")
TESTS = (
    "tests/api_resources/chat/test_completions.py",
    "tests/api_resources/test_completions.py",
    "tests/api_resources/test_embeddings.py",
    "tests/api_resources/test_models.py",
)
STRICT_BASE64 = ROOT / "scripts" / "openai_strict_base64.py"
"""What the client does with base64 in strict mode, whoever answers."""
MODEL_NAME = re.compile(r'(?:model=|models\.(?:with_\w+\.)?retrieve\(\s*)"([^"]+)"')
CONTEXT_TOKENS = 64
"""The tests give no token limit, and the simulated engine goes on until the context is full."""
START_TIMEOUT_S = 60.0
SETTINGS = {"TIDEGATE_MODEL__MIN_DIMENSIONS": "1"}
"""The tests of embeddings ask for one dimension."""


def model_names(source: Path) -> list[str]:
    """Returns every model name that the tests send."""
    texts = [(source / test).read_text("utf-8") for test in TESTS]
    return sorted({name for text in texts for name in MODEL_NAME.findall(text)})


@contextmanager
def serving(names: list[str]) -> Iterator[str]:
    """Runs a server under these names; yields its base URL."""
    port = free_port()
    flags = ["--engine", "simulated", "--max-model-len", str(CONTEXT_TOKENS), "--port", str(port), "--admin-port", "0"]
    flags += ["--state-dir", str(BUILD / "state")]
    for name in names:
        flags += ["--served-model-name", name]
    log = (BUILD / "server.log").open("wb")
    command = [Path(sys.executable).parent / "tidegate", "serve", *flags]
    with log, subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL, env=os.environ | SETTINGS) as server:
        try:
            wait_ready(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()
    if server.returncode != 0:
        raise SystemExit(f"the server ended with {server.returncode}: see {BUILD}/server.log")


def wait_ready(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"the server did not start: see {BUILD}/server.log")


def main() -> int:
    source = fetch_source(CLIENT, BUILD)
    python = make_environment(BUILD, REQUIREMENTS)
    names = model_names(source)
    say(f"models: {', '.join(names)}")
    options = ("-q", "-c", "pyproject.toml", "-o", "addopts=", "-p", "openai_suite_exceptions", *sys.argv[1:])
    with serving(names) as base_url:
        surroundings = {"TEST_API_BASE_URL": base_url, "PYTHONPATH": str(ROOT / "scripts")}
        return run(python, "-m", "pytest", *options, *TESTS, STRICT_BASE64, cwd=source, **surroundings)


if __name__ == "__main__":
    sys.exit(main())
