"""Checks the adapters of vLLM against the real one, built for processors, with the bundled model.

    python scripts/vllm_check [http] [library] [served]        all three without arguments

`http`: the checks of the `Engine` port over `vllm serve`; `library`: the same over `AsyncLLM` in process; `served`:
`tidegate serve --engine vllm` asked by hand, its engine process killed, drained. The environment is the peer's of
`bench/peers` (`requirements/peers/vllm.lock`), and a second one on top of it that has tidegate and what that needs
beside vLLM. The first run takes a quarter of an hour, most of it downloads; later ones about six minutes.
"""

import dataclasses
import re
import subprocess
import sys
import threading
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))

from catalog import Peer, Start, peer_named
from environment import PeerTroubleError, alone, attempt, inherited, make_environment, say

from bundled_model import bundled_model
from serving import OFFLINE, free_port, serving

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "peers"
HERE = Path(__file__).resolve().parent
PHASES = ("http", "library", "served")
FLAGS = (
    *("--enable-scale-out", "--enable-prompt-tokens-details", "--max-logprobs", "21"),
    *("--scheduling-policy", "priority", "--structured-outputs-config", '{"backend": "guidance"}'),
)
"""What docs/remote_engines.md says that a vLLM behind us is started with."""
NOT_NEEDED = ("llama-cpp-python",)
"""What tidegate asks for and an engine of vLLM's does not use; it would have to be compiled."""
OURS = "llguidance"
"""Of this one ours is taken: vLLM brings one that enforces less, and runs with ours as well."""
_STANZA = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)


def main() -> int:
    wanted = [phase for phase in PHASES if phase in sys.argv[1:]] or list(PHASES)
    peer = peer_named("vllm")
    folder = (BUILD / peer.name).resolve()
    try:
        with alone(folder):
            start = Start(folder=folder, gguf=Path(bundled_model()), port=free_port(None), num_threads=1)
            make_environment(peer, start)
            python = make_layer(start)
            statuses = [run_phase(phase, peer, start, python) for phase in wanted]
    except PeerTroubleError as trouble:
        sys.stderr.write(f"{trouble}\n")
        return 2
    return max(statuses)


def make_layer(start: Start) -> Path:
    """Returns the Python of an environment that has vLLM's packages, and tidegate with what is missing there."""
    folder = start.folder / "with-tidegate"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        say(f"making {folder} (the first time only)")
        venv.create(folder, with_pip=True, clear=True)
        (theirs,) = (start.folder / "venv").glob("lib/python*/site-packages")
        (ours,) = folder.glob("lib/python*/site-packages")
        (ours / "vllm.pth").write_text(f"{theirs}\n", "utf-8")
        lock = folder / "missing.lock"
        lock.write_text(missing(theirs), "utf-8")
        pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
        attempt((*pip, "--require-hashes", "-r", str(lock)), start)
        attempt((*pip, "--editable", str(ROOT)), start)
        (folder / "ready").touch()
    return python


def missing(theirs: Path) -> str:
    """Returns the part of our lock that is not among their packages."""
    text = (ROOT / "requirements" / "serve.lock").read_text("utf-8")
    starts = [match.start() for match in _STANZA.finditer(text)]
    stanzas = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    present = {normal(found.name.partition("-")[0]) for found in theirs.glob("*.dist-info")} | set(NOT_NEEDED)
    present.discard(OURS)
    return "".join(one for one in stanzas if normal(one.partition("==")[0]) not in present)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run_phase(phase: str, peer: Peer, start: Start, python: Path) -> int:
    say(f"phase {phase}")
    if phase != "http":
        return program(python, start, f"{phase}.py", str(start.model_folder))
    there = dataclasses.replace(peer, command=lambda begun: (*peer.command(begun), *FLAGS))
    with serving(there, start, threading.Event()) as server:
        url = f"http://127.0.0.1:{start.port}"
        return program(python, start, "over_http.py", str(start.model_folder), url, str(server.pid))


def program(python: Path, start: Start, name: str, *arguments: str) -> int:
    environment = inherited() | OFFLINE | dict(peer_named("vllm").settings)
    environment["PATH"] = f"{python.parent}:{environment.get('PATH', '')}"
    done = subprocess.run(
        (str(python), str(HERE / name), *arguments),
        cwd=start.folder,
        env=environment,
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
