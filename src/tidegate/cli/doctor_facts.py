"""What `tidegate doctor` looks at: the shell around the pure checks. Nothing here decides; nothing is downloaded."""

import contextlib
import importlib.metadata
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tidegate.cli.check_machine import FolderFacts
from tidegate.cli.check_model import ModelFileFacts
from tidegate.cli.check_software import LlamaProbe
from tidegate.cli.model_source import Hub, ModelSource
from tidegate.cli.model_source_error import ModelSourceError
from tidegate.cli.settings import Settings
from tidegate.http.listener import ListenError, bind_tcp
from tidegate.sizing.gguf_header import GgufError, read_gguf_header

_PROBE_TIMEOUT_S = 60.0
_PROBE = (
    "import json, llama_cpp as api;"
    "print(json.dumps([api.llama_print_system_info().decode(), bool(api.llama_supports_gpu_offload())]))"
)
_SHARD = re.compile(r"(?P<stem>.*)-00001-of-(?P<count>\d{5})\.gguf")


class NotHere(ModelSourceError):
    """The model would have to be downloaded."""


class OfflineHub:
    """Hugging Face's local cache, and a refusal to go further."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def list_files(self, repo: str) -> list[str]:
        """Raises NotHere."""
        raise NotHere(f"{repo} is not on this machine; `tidegate serve` will download it")

    def download(self, repo: str, file: str) -> Path:
        """Raises NotHere."""
        raise NotHere(f"{repo}:{file} is not on this machine; `tidegate serve` will download it")

    def cached(self) -> dict[str, dict[str, Path]]:
        return self._hub.cached()


def requirements() -> list[str]:
    """Returns this package's requirement lines."""
    return importlib.metadata.requires("tidegate") or []


def installed_version(name: str) -> str | None:
    """Returns the version of an installed library, None when it is absent."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def probe_llama() -> LlamaProbe:
    """Loads llama.cpp in a child: a library for another processor would end this process."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return LlamaProbe(1, str(error))
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return LlamaProbe(done.returncode, lines[-1][:300] if lines else "")
    features, has_gpu = json.loads(done.stdout.splitlines()[-1])
    return LlamaProbe(0, "", features, has_gpu)


def cpu_features() -> frozenset[str]:
    """Returns the processor's features by their Linux names; none on other systems."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    return frozenset()


def model_file_facts(source: ModelSource) -> ModelFileFacts:
    """Reads the head of a model file, and looks for its other parts."""
    path, origin = source.path, source.origin
    match = _SHARD.fullmatch(path.name)
    paths = [path]
    if match:
        count = int(match["count"])
        paths = [path.with_name(f"{match['stem']}-{i + 1:05}-of-{count:05}.gguf") for i in range(count)]
    missing = tuple(part.name for part in paths if not part.is_file())
    num_bytes = sum(part.stat().st_size for part in paths if part.is_file())
    try:
        header = read_gguf_header(path)
    except (GgufError, OSError) as error:
        fault = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ModelFileFacts(path, origin, num_bytes, None, fault, missing)
    return ModelFileFacts(path, origin, num_bytes, header, None, missing)


def listener_refusals(settings: Settings) -> tuple[str | None, str | None]:
    """Binds both listeners as `serve` would, and closes them; returns what binding said."""
    server = settings.server
    with contextlib.ExitStack() as bound:
        refusals: list[str | None] = []
        for host, port in ((server.host, server.port), (server.admin_host, server.admin_port)):
            try:
                bound.enter_context(bind_tcp(host, port))
                refusals.append(None)
            except ListenError as error:
                refusals.append(str(error))
    return refusals[0], refusals[1]


def descriptor_limit() -> int | None:
    """Returns how many files this process may have open; None for no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def runtime_folder() -> FolderFacts:
    """Looks at the folder in which the supervisor makes the engine's own."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    try:
        path = Path(given if given and os.path.isdir(given) else tempfile.gettempdir())
    except OSError as error:
        return FolderFacts(Path(str(error)), is_writable=False, free_bytes=None)
    try:
        free_bytes = shutil.disk_usage(path).free
    except OSError:
        free_bytes = None
    return FolderFacts(path, is_writable=os.access(path, os.W_OK | os.X_OK), free_bytes=free_bytes)
