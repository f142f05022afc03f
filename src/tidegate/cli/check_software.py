"""Checks of `tidegate doctor` on Python and libraries: facts in, findings out. Pure."""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.cli.finding import Finding, ok, problem, warning
from tidegate.cli.remote_settings import reads_folder
from tidegate.cli.settings import Settings

LEAST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*>=\s*(?P<least>[0-9.]+)")
_CPU_FEATURES = ("avx2", "fma", "f16c")
"""Without these llama.cpp computes several times slower on processors that have them."""
_REBUILD = "pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"


@dataclass(frozen=True, slots=True)
class LlamaProbe:
    """What a child process saw that loaded llama.cpp. `exit_code` is minus the signal where one ended it."""

    exit_code: int
    last_line: str = ""
    features: str = ""
    """llama.cpp's own words on what it was built with."""
    has_gpu: bool = False


def check_python(version: tuple[int, int, int], platform: str) -> Finding:
    """Python itself, and the system."""
    shown = ".".join(map(str, version)) + f" on {platform}"
    if version[:2] < LEAST_PYTHON:
        return problem("Python", shown, "install Python 3.11 or newer, then run: make setup PYTHON=python3.12")
    if platform == "win32":
        return problem("Python", shown, "use Linux, macOS or WSL: the engine listens on a Unix socket")
    return ok("Python", shown)


def least_versions(requirements: Sequence[str]) -> dict[str, str]:
    """Returns the least version of each library, from a package's requirement lines; extras are left out."""
    matches = (_REQUIREMENT.match(line) for line in requirements if "extra ==" not in line)
    return {match["name"]: match["least"] for match in matches if match}


def check_libraries(least: Mapping[str, str], installed: Mapping[str, str | None], settings: Settings) -> list[Finding]:
    """One row for all that is as it should be, and one for each library that is not."""
    unneeded = _unneeded(settings)
    good: list[str] = []
    findings: list[Finding] = []
    for name, version in least.items():
        found = installed.get(name)
        if found is not None and _parts(found) >= _parts(version):
            good.append(f"{name} {found}")
            continue
        shown = f"{name} is not installed" if found is None else f"{name} {found} is older than {version}"
        advice = f"pip install '{name}>={version}'"
        if name in unneeded:
            findings.append(warning("library", f"{shown}; these settings do without it", advice))
        else:
            findings.append(problem("library", shown, advice))
    return [ok("libraries", ", ".join(good)), *findings] if good else findings


def _unneeded(settings: Settings) -> frozenset[str]:
    names = {"huggingface-hub", "tokenizers"}
    if settings.engine.kind != "llama":
        names.add("llama-cpp-python")
    names |= {"uvicorn", "httptools"} if settings.server.http == "granian" else {"granian"}
    if reads_folder(settings):
        names -= {"tokenizers", "httptools"}
    return frozenset(names)


def _parts(version: str) -> tuple[int, ...]:
    """Returns the numbers that a version begins with: enough to compare released ones."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def check_llama(probe: LlamaProbe, cpu_features: frozenset[str], settings: Settings) -> list[Finding]:
    """Whether llama.cpp loads, and fits the processor and the wish for a GPU."""
    subject = "llama.cpp"
    if probe.exit_code == -signal.SIGILL:
        return [problem(subject, "its library uses instructions that this processor does not have", _REBUILD)]
    if probe.exit_code != 0:
        return [problem(subject, f"its library does not load: {probe.last_line or 'no reason given'}", _REBUILD)]
    findings = [ok(subject, f"loads; {'GPU and CPU' if probe.has_gpu else 'CPU only'}")]
    missing = [name.upper() for name in _CPU_FEATURES if name in cpu_features and not _has(probe, name)]
    if missing:
        advice = f"build it on this machine: {_REBUILD}"
        findings.append(warning(subject, f"built without {', '.join(missing)}, which this processor has", advice))
    if (settings.engine.gpu_layers or 0) > 0 and not probe.has_gpu:
        advice = f"CMAKE_ARGS=-DGGML_CUDA=on {_REBUILD}, or set engine.gpu_layers to 0"
        findings.append(problem(subject, "engine.gpu_layers asks for a GPU, and it was built without", advice))
    return findings


def _has(probe: LlamaProbe, feature: str) -> bool:
    return f"{feature.upper()} = 1" in probe.features.upper()
