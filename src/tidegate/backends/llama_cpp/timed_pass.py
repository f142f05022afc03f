"""Forward passes of one context, with the number of threads that the machine allows just then."""

import os
import time
from typing import Any

from tidegate.backends.llama_cpp.model import thread_count
from tidegate.backends.llama_cpp.thread_governor import ThreadGovernor
from tidegate.sizing.llama_cpp_options import LlamaCppOptions

DECODE_FAULTS = {
    1: "no room in the cache, although the accounts of blocks say there is",
    2: "aborted",
    -1: "the batch is not consistent with the cache",
    -2: "out of memory, or the cache could not be prepared",
    -3: "the computation failed",
}
"""What the codes of `llama_decode` mean."""


class TimedPass:
    """Runs `llama_decode` on a context, which belongs to the caller."""

    def __init__(self, api: Any, context: Any, options: LlamaCppOptions, *, on_gpu: bool) -> None:  # noqa: ANN401
        self._api = api
        self._context = context
        self._governor = _governor(options, on_gpu=on_gpu)

    @property
    def has_free_threads(self) -> bool:
        """Whether the number of threads is ours to choose, and matters."""
        return self._governor is not None

    @property
    def max_threads(self) -> int | None:
        """The most threads of a pass, where they are ours to choose."""
        return None if self._governor is None else self._governor.max_threads

    def set_threads(self, num_threads: int) -> None:
        """Uses at most so many threads from the next pass on; fewer while others take cores away."""
        self._governor = ThreadGovernor(num_threads)
        self._api.llama_set_n_threads(self._context, num_threads, num_threads)

    def decode(self, batch: Any) -> int:  # noqa: ANN401 - untyped bindings
        """Returns llama.cpp's code; 0 is success."""
        governor = self._governor
        if governor is None:
            return int(self._api.llama_decode(self._context, batch))
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        code = int(self._api.llama_decode(self._context, batch))
        if governor.feed(time.perf_counter() - wall_s, time.process_time() - cpu_s):
            self._api.llama_set_n_threads(self._context, governor.num_threads, governor.num_threads)
        return code


def _governor(options: LlamaCppOptions, *, on_gpu: bool) -> ThreadGovernor | None:
    """None where the number of threads is given, or where idle threads sleep and presence says nothing."""
    is_passive = os.environ.get("OMP_WAIT_POLICY", "").lower() == "passive" or "GOMP_SPINCOUNT" in os.environ
    if options.n_threads is not None or on_gpu or is_passive:
        return None
    return ThreadGovernor(thread_count(options))
