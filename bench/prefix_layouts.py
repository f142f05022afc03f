"""What the layouts of the cache ask for a cached prefix: sharing it, taking it over, and gaps between ids in use.

A share in the per-sequence layout copies a whole buffer at the next forward pass; there llama.cpp also makes one pass
of each run of consecutive ids, so that ids of running sequences that lie apart cost passes.
Usage: python bench/prefix_layouts.py [--layout per_sequence] [--length 4096] [--threads N] [--rounds 15]
"""

import argparse
import time

import numpy as np

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.core.plan import DecodeRow, KvDrop, KvMove, KvShare, KvTruncate, PrefillSlice, StepPlan
from tidegate.sizing.llama_cpp_options import LlamaCppOptions

PREFIX = 300
NUM_READ = 8
IDS = ((0,), (0, 1), (0, 2), (0, 1, 2, 3), (0, 1, 4, 5), (0, 2, 4, 6), (0, 1, 2, 3, 4, 5, 6, 7))


class Meter:
    """Steps of one backend. Takes the least of several rounds: others may use the machine."""

    def __init__(self, backend: LlamaCppBackend, rounds: int) -> None:
        self._backend = backend
        self._rounds = rounds
        self._lengths: dict[int, int] = {}

    def read(self, seq_id: int, num_tokens: int) -> float:
        """Returns milliseconds."""
        prompt = np.random.default_rng(seq_id).integers(1000, 30_000, num_tokens).tolist()
        self._lengths[seq_id] = num_tokens
        return self._time(StepPlan(prefill=[PrefillSlice(seq_id, 0, prompt, wants_last=False)]))

    def decode(self, ids: tuple[int, ...], moves: tuple[KvMove, ...] = (), undo: tuple[KvMove, ...] = ()) -> float:
        """Returns the milliseconds of a step that carries out `moves` and decodes one token of each id."""
        taken = []
        for _ in range(self._rounds):
            rows = [DecodeRow(i, self._lengths[i], 5000) for i in ids]
            taken.append(self._time(StepPlan(moves=list(moves), decode=rows)))
            back = [KvTruncate(i, self._lengths[i]) for i in ids]
            self._time(StepPlan(moves=[*back, *undo]))
        return min(taken)

    def _time(self, plan: StepPlan) -> float:
        start = time.perf_counter()
        self._backend.execute(plan)
        return (time.perf_counter() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layout", choices=("per_sequence", "unified"), default="per_sequence")
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    backend = LlamaCppBackend(
        LlamaCppOptions(
            model_path=bundled_model(),
            max_model_len=options.length,
            max_sequences=NUM_READ + 1,
            n_threads=options.threads,
            kv_layout=options.layout,
        )
    )
    meter = Meter(backend, options.rounds)
    read_ms = min(meter.read(seq_id, PREFIX) for seq_id in range(NUM_READ))
    print(f"{options.layout}, at most {options.length} tokens each; reading {PREFIX} tokens: {read_ms:.0f} ms")
    for ids in IDS:
        print(f"  decoding ids {ids}: {meter.decode(ids):.1f} ms")
    plain = meter.decode((1,))
    share = meter.decode((1,), (KvShare(0, NUM_READ, 256),), (KvDrop(NUM_READ),))
    cut = meter.decode((1,), (KvTruncate(0, PREFIX - 1),))
    print(
        f"  decoding one: {plain:.1f} ms; beside a share: {share - plain:+.1f} ms; beside a cut: {cut - plain:+.1f} ms"
    )
    print(f"  a share costs as much as reading {(share - plain) / read_ms * PREFIX:.1f} tokens")
    backend.close()


if __name__ == "__main__":
    main()
