"""How tests that others wrote are brought here: a source package by name and digest, an environment from a lock."""

import hashlib
import os
import socket
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """A source package of the index: `name` and `version` as pip knows them, `stem` as its archive is called."""

    name: str
    version: str
    stem: str
    sha256: str

    @property
    def folder(self) -> str:
        return f"{self.stem}-{self.version}"


def say(text: str) -> None:
    sys.stderr.write(f"==> {text}\n")
    sys.stderr.flush()


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> int:
    """Runs a command with more environment; returns its exit code."""
    say(" ".join(str(part) for part in command))
    return subprocess.run(command, cwd=cwd, env=os.environ | environment).returncode


def check(*command: str | Path) -> None:
    """Raises SystemExit when the command fails."""
    if run(*command) != 0:
        raise SystemExit(f"failed: {' '.join(str(part) for part in command)}")


def fetch_source(package: SourcePackage, build: Path, is_wanted: Callable[[str], bool] = lambda _: True) -> Path:
    """Downloads a package and unpacks those of its files that are wanted, unless that was done before.

    Returns the unpacked folder. Raises SystemExit for a download that fails, or has another digest.
    """
    source = build / package.folder
    if source.exists():
        return source
    build.mkdir(parents=True, exist_ok=True)
    archive = build / f"{package.folder}.tar.gz"
    wanted = ("--no-deps", "--no-binary", package.name, f"{package.name}=={package.version}")
    if not archive.exists():
        check(sys.executable, "-m", "pip", "download", "--quiet", "--dest", build, *wanted)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != package.sha256:
        raise SystemExit(f"{archive} has the digest {digest}, not {package.sha256}")
    with tarfile.open(archive) as packed:
        members = [member for member in packed if is_wanted(member.name)]
        packed.extractall(build, members=members, filter="data")
    return source


def make_environment(build: Path, *locks: Path) -> Path:
    """Returns the Python of an environment made from locks, made again when they have changed."""
    folder = build / "venv"
    python = folder / "bin" / "python"
    mark = folder / "ready"
    wanted = b"".join(lock.read_bytes() for lock in locks)
    if not mark.exists() or mark.read_bytes() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        for lock in locks:
            check(python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", lock)
        mark.write_bytes(wanted)
    return python


def free_port() -> int:
    """Returns a port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
