"""How many tokens a step takes by device, and when a device is a GPU."""

from typing import Any

import pytest

from tidegate.backends.llama_cpp.devices import uses_gpu
from tidegate.engine.options import EngineOptions
from tidegate.sizing.llama_cpp_options import llama_cpp_options
from tidegate.sizing.start_error import StartError
from tidegate.sizing.step_size import step_tokens


class FakeLlama:
    """llama.cpp's answer to whether it was built for a GPU and sees one."""

    def __init__(self, *, has_gpu: bool) -> None:
        self._has_gpu = has_gpu

    def llama_supports_gpu_offload(self) -> bool:
        return self._has_gpu


@pytest.mark.parametrize(
    ("has_gpu", "gpu_layers", "expected"),
    [
        (True, None, True),
        (True, 0, False),
        (True, 7, True),
        (False, None, False),
        (False, 0, False),
        (False, 7, False),
    ],
)
def test_a_gpu_is_used_where_there_is_one_and_layers_are_not_kept_from_it(
    has_gpu: bool, gpu_layers: int | None, expected: bool
) -> None:
    api: Any = FakeLlama(has_gpu=has_gpu)
    assert uses_gpu(api, gpu_layers) is expected


@pytest.mark.parametrize(
    ("wanted", "max_sequences", "on_gpu", "expected"),
    [
        (None, 32, False, 128),
        (None, 32, True, 512),
        (None, 200, False, 200),
        (None, 600, True, 600),
        (64, 32, True, 64),
    ],
)
def test_a_step_is_as_wide_as_its_device_likes(
    wanted: int | None, max_sequences: int, on_gpu: bool, expected: int
) -> None:
    assert step_tokens(wanted, max_sequences, on_gpu=on_gpu) == expected
    told = EngineOptions(backend="llama", model_path="m", max_sequences=max_sequences, max_step_tokens=wanted)
    assert llama_cpp_options(told, on_gpu=on_gpu).max_step_tokens == expected


def test_options_without_a_model_are_refused() -> None:
    with pytest.raises(StartError, match="model_path"):
        llama_cpp_options(EngineOptions(backend="llama"), on_gpu=False)
