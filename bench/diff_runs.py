"""Many runs of one build, compared: a comparison of two of them must report no regression.

python bench/diff_runs.py [--runs 21] [--engine scripted|llama] [--only PATTERN ...] [--skip PATTERN ...] [--folder DIR]

Records the suite's cases again and again from one server, then compares each recording with the next, without asking
again what differs, and prints what was found: regressions by case, allowed variations by aspect. `--engine llama` is
the bundled model, as `tidegate serve` without a flag serves it, and is asked
the cases of `BOUNDED` unless told otherwise.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import harness_path  # noqa: F401
from harness.server_process import ServerProcess
from tidegate.conformance.catalog import CASES
from tidegate.conformance.diff.comparison import Comparison, compare_sides
from tidegate.conformance.diff.difference import Meaning
from tidegate.conformance.diff.report_lines import place_of, shorten
from tidegate.conformance.diff.side import Side
from tidegate.conformance.recording.files import read_recording
from tidegate.conformance.recording.replay import replay

BOUNDED = (
    "admin.*",
    "auth.*",
    "chat.*",
    "choices.*",
    "completions.*",
    "embeddings.*",
    "errors.*",
    "headers.*",
    "idempotency.replay*",
    "limits.*",
    "logprobs.*",
    "models.*",
    "reasoning.*",
    "routes.*",
    "seeds.*",
    "stop.*",
    "stream.*",
    "structured.schema_*",
    "tokens.*",
    "tools.named*",
    "tools.required*",
    "unicode.*",
    "usage.*",
)
"""Cases that let a model say little."""

RAN = (0, 1)
"""Exit statuses of `tidegate conform` when it could run."""
PROGRAM = "from tidegate.cli.main import main; main()"


def record(server: ServerProcess, folder: Path, flags: list[str]) -> None:
    """Makes one recording; a run with failing cases is one too. Ends the program when none was made."""
    command = [sys.executable, "-c", PROGRAM, "conform", "--base-url", f"http://127.0.0.1:{server.port}/v1", *flags]
    command += ["--admin-url", f"http://127.0.0.1:{server.admin_port}", "--seed", "0", "--record", str(folder)]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in RAN:
        sys.exit(f"{folder.name}: tidegate conform ended with {done.returncode}: {done.stderr.strip()}")
    last = done.stdout.strip().rpartition("\n")[2]
    print(f"{folder.name}: {last} ({time.monotonic() - start:.0f} s)", flush=True)


def compare(old: Path, new: Path) -> Comparison:
    """Compares two recordings as they are."""
    sides = [Side(folder.name, [replay(read_recording(folder), CASES)]) for folder in (old, new)]
    return compare_sides(sides[0], sides[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--engine", default="scripted")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--folder", type=Path, default=None, help="where the recordings are kept; default: nowhere")
    args = parser.parse_args()
    only = args.only or (BOUNDED if args.engine == "llama" else ())
    flags = [part for pattern in only for part in ("--only", pattern)]
    flags += [part for pattern in args.skip for part in ("--skip", pattern)]
    with tempfile.TemporaryDirectory() as temporary:
        base = args.folder or Path(temporary)
        folders = [base / f"run-{number:02}" for number in range(1, args.runs + 1)]
        missing = [folder for folder in folders if not folder.exists()]
        if missing:
            with ServerProcess(args.engine) as server:
                for folder in missing:
                    record(server, folder, flags)
        found: Counter[Meaning] = Counter()
        for old, new in pairwise(folders):
            comparison = compare(old, new)
            found.update(comparison.counts)
            for difference in comparison.of(Meaning.REGRESSION):
                print(f"{old.name} {new.name}: {place_of(difference)}: {difference.because}")
                print(f"    {shorten(difference.old)}\n    {shorten(difference.new)}")
        counts = ", ".join(f"{meaning.value}: {found[meaning]}" for meaning in Meaning)
        print(f"{len(folders) - 1} comparisons of {args.runs} runs: {counts}")


if __name__ == "__main__":
    main()
