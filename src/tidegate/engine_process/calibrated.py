"""Threads and prefill chunks that suit the machine: remembered from an earlier start, or timed now."""

from pathlib import Path

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.calibrate import BUDGET_S, Stopwatch, Subject, calibrate
from tidegate.backends.llama_cpp.calibration import BEST, GOOD, LONG_STEP_S, Calibration
from tidegate.backends.llama_cpp.calibration_file import calibration_key, read_calibration, write_calibration
from tidegate.engine.options import EngineOptions
from tidegate.machine import usable_processors


def find_calibration(backend: LlamaCppBackend, options: EngineOptions) -> Calibration:
    """Returns what suits this model here, and sets the number of threads accordingly.

    Nothing is timed where nothing would come of it: without a file to remember it in, or where threads and chunks are
    both given. What was disturbed by other work is not remembered.
    """
    is_settled = options.prefill_chunk_tokens is not None and not backend.has_free_threads
    if options.calibration_file is None or is_settled:
        return Calibration()
    path = Path(options.calibration_file)
    processors = usable_processors()
    plan = backend.memory_plan
    key = calibration_key(
        backend.caps.weights_digest, backend.caps.build, processors, backend.has_free_threads, options.num_threads,
        options.num_gpu_layers, options.main_gpu, options.tensor_split, plan.layout, plan.max_step_tokens,
        options.flash_attn, options.kv_type_k, options.kv_type_v, BEST, GOOD, LONG_STEP_S,
    )  # fmt: skip
    known = read_calibration(path, key)
    if known is not None:
        if known.num_threads is not None:
            backend.set_threads(known.num_threads)
        return known
    watch = Stopwatch(0.0)
    watch.ends_at = watch.wall() + BUDGET_S
    set_threads = backend.set_threads if backend.has_free_threads else None
    found = calibrate(Subject(backend, options.num_threads or processors, set_threads), watch)
    if found.prefill_chunk_tokens is not None and (
        found.num_threads is not None or set_threads is None or processors == 1
    ):
        write_calibration(path, key, found)
    return found
