"""The GPUs that llama.cpp sees: whether weights go there, and how much memory is free."""

import ctypes
from pathlib import Path
from typing import Any

from tidegate.sizing.shared_memory import DeviceMemory

# enum ggml_backend_dev_type: a GPU with memory of its own, and one that shares the host's.
_GPU_TYPES = (1, 2)


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
