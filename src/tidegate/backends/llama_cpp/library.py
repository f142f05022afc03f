"""Loads llama.cpp's C interface once, checks that it is one we know, and takes over its log."""

import ctypes
import importlib
import importlib.metadata
import logging
import re
from collections import deque
from typing import Any

from tidegate.sizing.start_error import StartError

LEAST_VERSION = (0, 3, 36)

# What we call. A binding without one of these would fail in the middle of a run.
_NEEDED_FUNCTIONS = (
    "llama_backend_init",
    "llama_context_default_params",
    "llama_decode",
    "llama_free",
    "llama_get_embeddings",
    "llama_get_embeddings_seq",
    "llama_get_logits",
    "llama_get_memory",
    "llama_init_from_model",
    "llama_log_set",
    "llama_memory_clear",
    "llama_memory_seq_cp",
    "llama_memory_seq_rm",
    "llama_model_cls_label",
    "llama_model_default_params",
    "llama_model_free",
    "llama_model_get_vocab",
    "llama_model_has_decoder",
    "llama_model_has_encoder",
    "llama_model_is_hybrid",
    "llama_model_is_recurrent",
    "llama_model_load_from_file",
    "llama_model_meta_val_str",
    "llama_model_n_cls_out",
    "llama_model_n_ctx_train",
    "llama_model_n_embd",
    "llama_model_n_embd_out",
    "llama_model_n_head",
    "llama_model_n_head_kv",
    "llama_model_n_layer",
    "llama_model_size",
    "llama_n_batch",
    "llama_n_ctx",
    "llama_n_ctx_seq",
    "llama_print_system_info",
    "llama_set_n_threads",
    "llama_supports_gpu_offload",
    "llama_token_to_piece",
    "llama_vocab_eos",
    "llama_vocab_get_attr",
    "llama_vocab_is_eog",
    "llama_vocab_n_tokens",
)
_NEEDED_CONTEXT_FIELDS = (
    "embeddings",
    "flash_attn_type",
    "kv_unified",
    "n_outputs_max",
    "n_seq_max",
    "pooling_type",
    "swa_full",
    "type_k",
    "type_v",
)

_INSTALL = "install it with: pip install 'llama-cpp-python>=0.3.36'"

logger = logging.getLogger("tidegate.llama_cpp")

# enum ggml_log_level of ggml.h (the bindings' own table of it is shifted by one); 5 continues the message before it.
_LOG_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_LOG_CONTINUES = 5


class LogLines:
    """Joins the pieces of llama.cpp's messages to lines, keeping those at `least_level` and above."""

    def __init__(self, least_level: int = logging.WARNING) -> None:
        self._least_level = least_level
        self._level = logging.INFO
        self._open = ""

    def feed(self, ggml_level: int, text: bytes) -> list[tuple[int, str]]:
        """Takes one piece; returns the finished lines with their levels."""
        if ggml_level != _LOG_CONTINUES:
            self._level = _LOG_LEVELS.get(ggml_level, logging.INFO)
        if self._level < self._least_level:
            self._open = ""
            return []
        *done, self._open = (self._open + text.decode("utf-8", "replace")).split("\n")
        return [(self._level, line) for line in done if line.strip()]


class Library:
    """The loaded bindings (`api`), with what identifies the build."""

    def __init__(self, api: Any, version: str) -> None:  # noqa: ANN401 - untyped bindings
        self.api = api
        self.version = version
        self._lines = LogLines()
        # The last errors, to explain a refusal: functions of llama.cpp only return null.
        self.recent_errors: deque[str] = deque(maxlen=4)
        # llama.cpp keeps the bare pointer: the callback must live as long as the process.
        self._callback = api.llama_log_callback(self._on_log)
        api.llama_log_set(self._callback, ctypes.c_void_p(0))
        api.llama_backend_init()

    def _on_log(self, level: int, text: bytes | None, _user_data: object) -> None:
        for severity, line in self._lines.feed(level, text or b""):
            logger.log(severity, "%s", line)
            if severity >= logging.ERROR:
                self.recent_errors.append(line)

    @property
    def build(self) -> str:
        """Name and version of the build with the processor features it uses; equal results need an equal build."""
        info = self.api.llama_print_system_info().decode("utf-8", "replace")
        features = sorted(set(re.findall(r"(\w+) = 1\b", info)))
        return f"llama_cpp {self.version} ({' '.join(features)})"


_loaded: list[Library] = []


def load_library() -> Library:
    """Returns the bindings, loaded at the first call.

    Raises StartError when they are missing, too old, or lack something that we call.
    """
    if _loaded:
        return _loaded[0]
    try:
        version = importlib.metadata.version("llama-cpp-python")
        api = importlib.import_module("llama_cpp.llama_cpp")
    except importlib.metadata.PackageNotFoundError as error:
        raise StartError(f"llama-cpp-python is not installed: {_INSTALL}") from error
    except (ImportError, OSError, RuntimeError) as error:
        raise StartError(f"llama-cpp-python is installed but cannot be loaded ({error}): {_INSTALL}") from error
    check_version(version)
    check_interface(api, version)
    _loaded.append(Library(api, version))
    return _loaded[0]


def check_version(version: str) -> None:
    """Raises StartError when `version` is older than the one we were written for."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise StartError(f"llama-cpp-python {version} is too old, {least} or later is needed: {_INSTALL}")


def check_interface(api: Any, version: str) -> None:  # noqa: ANN401 - untyped bindings
    """Raises StartError naming what these bindings lack."""
    missing = [name for name in _NEEDED_FUNCTIONS if not hasattr(api, name)]
    fields = {field[0] for field in getattr(getattr(api, "llama_context_params", None), "_fields_", ())}
    missing += [f"llama_context_params.{name}" for name in _NEEDED_CONTEXT_FIELDS if name not in fields]
    if missing:
        raise StartError(
            f"llama-cpp-python {version} lacks {', '.join(missing)}: this version is not supported; "
            "install 0.3.36, the version that tidegate was tested with"
        )
