"""How much memory is free, and how many processors this process may use."""

import ctypes
import os
from pathlib import Path
from typing import Any

from tidegate.sizing.shared_memory import DeviceMemory

# enum ggml_backend_dev_type: a GPU with memory of its own, and one that shares the host's.
_GPU_TYPES = (1, 2)


def usable_processors() -> int:
    """Number of processors this process may run on, with the limit of its control group."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_words("cpu.max")
    if len(quota) == 2 and quota[0] != "max":
        count = min(count, max(1, int(quota[0]) // int(quota[1])))
    return count


def free_host_bytes() -> int | None:
    """Memory that can still be taken on this machine, or in this container. None where it cannot be known."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limit, used = _cgroup_words("memory.max"), _cgroup_words("memory.current")
    if limit and used and limit[0] != "max":
        # Pages of files are given back under pressure.
        cached = dict(zip(words[::2], words[1::2], strict=False)) if (words := _cgroup_words("memory.stat")) else {}
        found.append(int(limit[0]) - int(used[0]) + int(cached.get("inactive_file", 0)))
    return min(found) if found else None


def uses_gpu(api: Any, n_gpu_layers: int | None) -> bool:  # noqa: ANN401 - untyped bindings
    """Whether weights go to a GPU: a build for one that sees one, of which not 0 layers are asked for. None: all."""
    return bool(api.llama_supports_gpu_offload()) and n_gpu_layers != 0


def gpu_memory(api: Any) -> DeviceMemory | None:  # noqa: ANN401 - untyped bindings
    """Memory of all GPUs that llama.cpp sees. None where it sees none."""
    if not api.llama_supports_gpu_offload():
        return None
    try:
        ggml = ctypes.CDLL(str(next(Path(api.__file__).parent.glob("lib/*ggml.*"))))
        ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
        ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
        ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
        ggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
        ggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, *[ctypes.POINTER(ctypes.c_size_t)] * 2]
        devices = [ggml.ggml_backend_dev_get(i) for i in range(ggml.ggml_backend_dev_count())]
        found = [_memory_of(ggml, device) for device in devices if ggml.ggml_backend_dev_type(device) in _GPU_TYPES]
    except (OSError, AttributeError, StopIteration):
        return None
    return DeviceMemory(sum(one.free for one in found), sum(one.total for one in found)) if found else None


def _memory_of(ggml: ctypes.CDLL, device: int) -> DeviceMemory:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
    return DeviceMemory(free.value, total.value)


def _cgroup_words(name: str) -> list[str]:
    try:
        return Path("/sys/fs/cgroup", name).read_text("ascii").split()
    except OSError:
        return []
