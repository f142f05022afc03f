"""Measures Tidegate against another server with the same model, run by run in turns, with `tidegate bench`.

    python bench/peers/compare.py llamacpp --threads 2 --out results        all scenarios
    python bench/peers/compare.py llamacpp --only one,eight --runs 3        some of them
    python bench/peers/compare.py llamacpp --ours engine.flash_attention=on with a setting of ours
    python bench/peers/compare.py --table results/llamacpp                  the table of reports that are there

Both servers run all the time; only one is asked at a time. Writes a JSON and an HTML report for each scenario, and
prints a table in Markdown. On a machine that does other things too, `--right-of-way` puts both servers and the client
before the rest: Linux shares processors between sessions first (autogroups), so that `nice` alone does nothing here.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil
from catalog import CONTEXT_TOKENS, Start, peer_named
from environment import alone, installed_version, make_environment, say

import server_process
from bundled_model import bundled_model
from serving import free_port, serving

BUILD = Path(__file__).resolve().parents[2] / "build" / "peers"
SHORT = ("--input-tokens", "64", "--output-tokens", "48", "--ignore-eos")


@dataclass(frozen=True, slots=True)
class Scenario:
    """`flags` of `tidegate bench`; `shown`: the numbers that the table shows."""

    name: str
    what: str
    flags: tuple[str, ...]
    shown: tuple[str, ...] = ("output_tokens_per_s", "ttft_p50", "ttft_p99", "itl_p50", "itl_p99")


def _closed(num_clients: int, num_requests: int, *flags: str) -> tuple[str, ...]:
    return ("--clients", str(num_clients), "--requests", str(num_requests), *flags)


SCENARIOS = (
    Scenario("one", "1 client", _closed(1, 8, *SHORT)),
    Scenario("eight", "8 clients", _closed(8, 24, *SHORT)),
    Scenario("many", "32 clients", _closed(32, 64, *SHORT)),
    Scenario(
        "chat",
        "8 clients, prompts of 600 tokens, answers of 128",
        _closed(8, 16, "--input-tokens", "600", "--output-tokens", "128", "--ignore-eos"),
    ),
    Scenario(
        "prefix",
        "8 clients, a shared beginning of 500 tokens",
        _closed(
            8, 24, "--workload", "shared-prefix", "--prefix-tokens", "500", "--input-tokens", "24",
            "--output-tokens", "24", "--ignore-eos",
        ),
    ),
    Scenario(
        "agent",
        "4 conversations of 4 turns",
        _closed(
            4, 8, "--workload", "agent", "--turns", "4", "--prefix-tokens", "200", "--input-tokens", "48",
            "--output-tokens", "24", "--ignore-eos",
        ),
    ),
    Scenario(
        "mixed",
        "8 clients, one prompt in 6 has 1,000 tokens",
        _closed(
            8, 24, "--workload", "mixed", "--long-every", "6", "--long-input-tokens", "1000", "--input-tokens", "32",
            "--output-tokens", "64", "--ignore-eos",
        ),
        ("output_tokens_per_s", "short.ttft_p50", "short.itl_p50", "short.itl_p99", "short.itl_max", "long.ttft_p50"),
    ),
    Scenario(
        "constrained",
        "8 clients, JSON Schema",
        _closed(8, 24, "--workload", "constrained", "--input-tokens", "48", "--output-tokens", "96"),
    ),
)  # fmt: skip


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", help="see run.py --list")
    parser.add_argument("--build", type=Path, default=BUILD, metavar="DIR", help="where peers live")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the forward pass, on both sides")
    parser.add_argument("--slots", type=int, default=32, help="requests that run at once, on both sides")
    parser.add_argument("--right-of-way", type=int, metavar="NICE", help="of the sessions, -20 to 19 (Linux, as root)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help=f"of {', '.join(scenario.name for scenario in SCENARIOS)}")
    parser.add_argument("--ours", action="append", default=[], metavar="NAME=VALUE", help="a setting of Tidegate's")
    parser.add_argument("--out", type=Path, default=Path("peer-results"), metavar="DIR")
    parser.add_argument("--table", type=Path, metavar="DIR", help="only print the table of the reports in DIR")
    arguments = parser.parse_args()
    if arguments.table is None and arguments.peer is None:
        parser.error("name a peer, or --table DIR")
    return arguments


def main() -> int:
    arguments = read_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    folder: Path = arguments.table or arguments.out / arguments.peer
    if arguments.table is None:
        folder.mkdir(parents=True, exist_ok=True)
        measure(arguments, folder)
    print_table(folder)
    return 0


def measure(arguments: argparse.Namespace, out: Path) -> None:
    """Starts both servers and runs every scenario that was asked for."""
    peer = peer_named(arguments.peer)
    wanted = set(arguments.only.split(",")) if arguments.only else {scenario.name for scenario in SCENARIOS}
    gguf = Path(bundled_model()).resolve()
    folder = (arguments.build / peer.name).resolve()
    flags = ("--max-model-len", str(CONTEXT_TOKENS), "--max-sequences", str(arguments.slots))
    flags += ("--threads", str(arguments.threads), "--served-model-name", peer.model)
    settings = dict(setting.partition("=")[::2] for setting in arguments.ours)
    environment = {f"TIDEGATE_{name.upper().replace('.', '__')}": value for name, value in settings.items()}
    with alone(folder), contextlib.ExitStack() as stack:
        start = Start(
            folder=folder,
            gguf=gguf,
            port=free_port(None),
            num_threads=arguments.threads,
            num_slots=arguments.slots,
        )
        make_environment(peer, start)
        version = installed_version(peer, start)
        theirs = stack.enter_context(serving(peer, start, threading.Event()))
        ours = stack.enter_context(server_process.serving(str(gguf), *flags, **environment))
        if arguments.right_of_way is not None:
            give_way((os.getpid(), theirs.pid, ours.process.pid), arguments.right_of_way)
        about = {
            "peer": f"{peer.package} {version}",
            "threads": arguments.threads,
            "slots": arguments.slots,
            "ours": settings,
        }
        about |= {"machine": f"{platform.machine()}, {os.cpu_count()} processors", "python": platform.python_version()}
        (out / "about.json").write_text(json.dumps(about, indent=1), "utf-8")
        for scenario in SCENARIOS:
            if scenario.name in wanted:
                say(f"{scenario.name}: {scenario.what}; load average {os.getloadavg()[0]:.1f}")
                bench(scenario, ours.port, start.port, arguments, out)


def give_way(roots: Sequence[int], nice: int) -> None:
    """Sets the share of processors of the sessions of these processes and of all that they started."""
    for root in roots:
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            Path(f"/proc/{each.pid}/autogroup").write_text(str(nice), "ascii")


def bench(scenario: Scenario, our_port: int, their_port: int, arguments: argparse.Namespace, out: Path) -> None:
    """Runs one scenario; a failure is told and does not end the others.

    Each has a seed of its own: prompts of one must not lie in the caches that another has filled.
    """
    command = [sys.executable, "-c", "from tidegate.cli.main import main; main()", "bench"]
    command += ["--base-url", f"http://127.0.0.1:{our_port}/v1", "--against", f"http://127.0.0.1:{their_port}/v1"]
    command += [*scenario.flags, "--runs", str(arguments.runs)]
    command += ["--seed", str(arguments.seed + SCENARIOS.index(scenario))]
    command += ["--report", str(out / f"{scenario.name}.json"), "--report", str(out / f"{scenario.name}.html")]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        say(f"{scenario.name}: tidegate bench ended with {done.returncode}")


def print_table(folder: Path) -> None:
    """Prints what the reports of a folder say, as Markdown."""
    print("| scenario | number | Tidegate | peer | ratio (lowest to highest) |\n|---|---|---|---|---|")
    for scenario in SCENARIOS:
        path = folder / f"{scenario.name}.json"
        if path.is_file():
            for line in _rows(scenario, json.loads(path.read_text("utf-8"))):
                print(line)


def _rows(scenario: Scenario, report: dict[str, Any]) -> list[str]:
    ours, theirs = (server["spreads"] for server in report["servers"])
    ratios = {ratio["metric"]: ratio for ratio in report["ratios"]}
    rows: list[str] = []
    for name in scenario.shown:
        ratio = ratios.get(name)
        if ratio is not None:
            spread = f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
            cells = (_spell(name, ours[name]["median"]), _spell(name, theirs[name]["median"]), spread)
            rows.append(f"| {'' if rows else scenario.what} | {name} | {' | '.join(cells)} |")
    for server, side in zip(report["servers"], ("Tidegate", "peer"), strict=True):
        num_errors = sum(run["total"]["num_errors"] for run in server["runs"])
        if num_errors:
            rows.append(f"| | errors of {side} | {num_errors} | | |")
    return rows


def _spell(name: str, value: float) -> str:
    return f"{value:.1f}" if name.endswith("_per_s") else f"{value * 1000:,.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
