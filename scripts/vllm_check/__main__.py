"""Checks the adapters of vLLM against the real one, built for processors, with the bundled model.

    python scripts/vllm_check [http] [old] [library] [served] [--build DIR]        all four without a name

`http`: the checks of the `Engine` port over `vllm serve`; `old`: that one with the llguidance that vLLM brings, whose
constraints must be refused; `library`: the checks of the port over `AsyncLLM` in process; `served`: `tidegate serve
--engine vllm` asked by hand, its engine process killed, drained. The environment is the peer's of `bench/peers`
(`requirements/peers/vllm.lock`, in `--build`), and a second one on top of it that has tidegate and what that needs
beside vLLM. The first run takes a quarter of an hour, most of it downloads; later ones about six minutes.
"""

import argparse
import dataclasses
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))

from catalog import Peer, Start, peer_named
from environment import PeerTroubleError, alone, inherited, make_environment, say
from layer import make_layer

from bundled_model import bundled_model
from serving import OFFLINE, free_port, serving

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PHASES = ("http", "old", "library", "served")
FLAGS = (
    *("--enable-scale-out", "--enable-prompt-tokens-details", "--max-logprobs", "21"),
    *("--scheduling-policy", "priority", "--structured-outputs-config", '{"backend": "guidance"}'),
)
"""What docs/remote_engines.md says that a vLLM behind us is started with."""


def main() -> int:
    arguments = _arguments()
    peer = peer_named("vllm")
    folder = (arguments.build / peer.name).resolve()
    try:
        with alone(folder):
            start = Start(folder=folder, gguf=Path(bundled_model()), port=free_port(None), num_threads=1)
            make_environment(peer, start)
            python = make_layer(start)
            failed = [phase for phase in arguments.phases or PHASES if run_phase(phase, peer, start, python) != 0]
    except PeerTroubleError as trouble:
        sys.stderr.write(f"{trouble}\n")
        return 2
    say(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phases", nargs="*", choices=[*PHASES, []], metavar="phase")
    build = ROOT / "build" / "peers"
    parser.add_argument("--build", type=Path, default=build, help=f"where vllm/venv and vllm/model lie ({build})")
    return parser.parse_args()


def run_phase(phase: str, peer: Peer, start: Start, python: Path) -> int:
    """Returns the status of the program that checks it."""
    say(f"phase {phase}")
    if phase in ("library", "served"):
        return program(python, f"{phase}.py", str(start.model_folder))
    collector = free_port(None)
    traces = ("--otlp-traces-endpoint", f"http://127.0.0.1:{collector}/v1/traces")
    newer = (str(python), "-m", "vllm.entrypoints.cli.main")

    def command(begun: Start) -> tuple[str, ...]:
        words = peer.command(begun)
        return (*words, *FLAGS) if phase == "old" else (*newer, *words[1:], *FLAGS, *traces)

    there = dataclasses.replace(peer, command=command, settings=peer.settings | TRACING)
    with serving(there, start, threading.Event()) as server:
        url = f"http://127.0.0.1:{start.port}"
        name, *more = ("old_llguidance.py",) if phase == "old" else ("over_http.py", str(server.pid), str(collector))
        return program(python, name, str(start.model_folder), url, *more)


TRACING = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "100"}


def program(python: Path, name: str, *arguments: str) -> int:
    environment = inherited() | OFFLINE | dict(peer_named("vllm").settings) | TRACING
    environment["PATH"] = f"{python.parent}:{environment.get('PATH', '')}"
    return subprocess.run((str(python), str(HERE / name), *arguments), env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
