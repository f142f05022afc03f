"""Runs openai-python's own API tests (chat, completions, embeddings, models) against a Tidegate of ours.

The tests lie in the client's source package, which is fetched from the package index by name, checked against a known
digest, and unpacked under `build/`. They run in an environment of their own. Which of them are refused on purpose, and
why, is in `openai_suite_exceptions.py`.
"""

import hashlib
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "openai-suite"
REQUIREMENTS = ROOT / "requirements" / "openai-suite.lock"
VERSION = "3.57.0"
SHA256 = "5a0a89d6a542efc85e2a8cec701ca9265b795d578c777828e10fafdf80e333b6"
SOURCE = BUILD / f"openai-{VERSION}"
TESTS = (
    "tests/api_resources/chat/test_completions.py",
    "tests/api_resources/test_completions.py",
    "tests/api_resources/test_embeddings.py",
    "tests/api_resources/test_models.py",
)
MODEL_NAME = re.compile(r'(?:model=|models\.(?:with_\w+\.)?retrieve\(\s*)"([^"]+)"')
CONTEXT_TOKENS = 64
"""The tests give no token limit, and the simulated engine goes on until the context is full."""
START_TIMEOUT_S = 60.0
SETTINGS = {"TIDEGATE_MODEL__MIN_DIMENSIONS": "1"}
"""The tests of embeddings ask for one dimension."""


def run(*command: str | Path, **environment: str) -> int:
    say(" ".join(str(part) for part in command))
    return subprocess.run(command, cwd=SOURCE if SOURCE.exists() else ROOT, env=os.environ | environment).returncode


def check(*command: str | Path) -> None:
    if run(*command) != 0:
        raise SystemExit(f"failed: {' '.join(str(part) for part in command)}")


def say(text: str) -> None:
    sys.stderr.write(f"==> {text}\n")
    sys.stderr.flush()


def fetch_source() -> None:
    """Downloads and unpacks the client's source package, unless that was done before."""
    if SOURCE.exists():
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    archive = BUILD / f"openai-{VERSION}.tar.gz"
    wanted = ("--no-deps", "--no-binary", "openai", f"openai=={VERSION}")
    check(sys.executable, "-m", "pip", "download", "--quiet", "--dest", BUILD, *wanted)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{archive} has the digest {digest}, not {SHA256}")
    with tarfile.open(archive) as packed:
        packed.extractall(BUILD, filter="data")


def make_environment() -> Path:
    """Returns the Python that runs the tests."""
    folder = BUILD / "venv"
    python = folder / "bin" / "python"
    mark = folder / "ready"
    if not mark.exists() or mark.read_bytes() != REQUIREMENTS.read_bytes():
        venv.create(folder, with_pip=True, clear=True)
        check(python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", REQUIREMENTS)
        mark.write_bytes(REQUIREMENTS.read_bytes())
    return python


def model_names() -> list[str]:
    """Returns every model name that the tests send."""
    texts = [(SOURCE / test).read_text("utf-8") for test in TESTS]
    return sorted({name for text in texts for name in MODEL_NAME.findall(text)})


@contextmanager
def serving(names: list[str]) -> Iterator[str]:
    """Runs a server under these names; yields its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
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
    fetch_source()
    python = make_environment()
    names = model_names()
    say(f"models: {', '.join(names)}")
    options = ("-q", "-o", "addopts=", "-p", "openai_suite_exceptions", *sys.argv[1:])
    with serving(names) as base_url:
        return run(
            python, "-m", "pytest", *options, *TESTS, TEST_API_BASE_URL=base_url, PYTHONPATH=str(ROOT / "scripts")
        )


if __name__ == "__main__":
    sys.exit(main())
