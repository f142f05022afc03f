"""A million steps of the scheduler on the simulated backend, with aborts, preemption, holds, sharing, speculation and
flushes, each step held to the laws of `tidegate.testing.conservation_run`.

Usage: python bench/conservation.py [--steps 1000000] [--seed 1]
"""

import argparse
import time

from tidegate.testing.conservation_run import ConservationRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    run, start = ConservationRun(options.seed), time.perf_counter()
    tally = run.tally
    while tally.num_steps < options.steps:
        run.run_round()
        if tally.num_rounds % 50 == 0:
            print(f"{tally.num_steps} steps in {time.perf_counter() - start:.0f} s", flush=True)
    print(f"seed {options.seed}: {tally.num_steps} steps in {tally.num_rounds} rounds, no law broken")
    print(f"{tally.num_requests} requests, {tally.num_compared} of them compared with what they get alone")
    print(", ".join(f"{name} {count}" for name, count in sorted(tally.counts.items())))


if __name__ == "__main__":
    main()
