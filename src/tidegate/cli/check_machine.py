"""Checks of `tidegate doctor` on addresses, processors and folders: facts in, findings out. Pure."""

from dataclasses import dataclass
from pathlib import Path

from tidegate.cli.finding import Finding, megabytes, ok, problem, warning
from tidegate.cli.settings import Settings
from tidegate.cli.speculation_text import sameness_text, speculation_text

_LEAST_TEMP_BYTES = 16 * 1024 * 1024
_MAX_SOCKET_PATH_BYTES = 100
_SOCKET_NAME = "tidegate-xxxxxxxx/engine.sock"
_SPARE_DESCRIPTORS = 64
"""For listeners, the engine, logs and libraries."""


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """Where the engine's socket will lie."""

    path: Path
    is_writable: bool
    free_bytes: int | None


def check_listener(name: str, host: str, port: int, refusal: str | None) -> Finding:
    """Whether an address can be listened on. `refusal` is what binding said."""
    if refusal is not None:
        flag = "--port" if name == "public" else "--admin-port"
        return problem(f"{name} port", refusal, f"choose another one: tidegate serve {flag} {port + 1 if port else 0}")
    return ok(f"{name} port", f"{host}:{port} is free" if port else f"{host}, a free port")


def check_processors(num_usable: int, settings: Settings) -> Finding:
    """Threads of the forward pass against processors that this process may use."""
    threads, number = settings.engine.threads, settings.engine.most_replicas
    share = max(1, num_usable // number)
    each = "" if number == 1 else f" in each of {number} engines"
    if threads is not None and threads * number > num_usable:
        found = f"engine.threads is {threads}{each}, and this process may use {num_usable} processors"
        return warning("processors", found, f"set engine.threads to {share} or less, or leave it out")
    return ok("processors", f"{num_usable} usable, {threads or share} threads for the forward pass{each}")


def check_descriptors(soft_limit: int | None, settings: Settings) -> Finding:
    """Every open stream takes one file descriptor."""
    if soft_limit is None:
        return ok("open files", "no limit")
    wanted = (
        settings.engine.max_sequences * settings.engine.most_replicas
        + settings.admission.queue_depth
        + _SPARE_DESCRIPTORS
    )
    if soft_limit < wanted:
        found = f"at most {soft_limit}, while these settings admit {wanted - _SPARE_DESCRIPTORS} requests"
        return warning("open files", found, f"before starting: ulimit -n {max(4096, wanted)}")
    return ok("open files", f"at most {soft_limit}")


def check_folder(facts: FolderFacts) -> Finding:
    """The runtime folder: the engine's socket lies there."""
    subject, advice = "runtime folder", "set TMPDIR (or XDG_RUNTIME_DIR) to a short path of a writable folder"
    if not facts.is_writable:
        return problem(subject, f"{facts.path} cannot be written", advice)
    if len(str(facts.path / _SOCKET_NAME).encode()) > _MAX_SOCKET_PATH_BYTES:
        return problem(subject, f"{facts.path} is too long a path for a Unix socket", advice)
    if facts.free_bytes is not None and facts.free_bytes < _LEAST_TEMP_BYTES:
        return warning(subject, f"{facts.path} has {megabytes(facts.free_bytes)} left", "free some space there")
    left = "" if facts.free_bytes is None else f", {megabytes(facts.free_bytes)} left"
    return ok(subject, f"{facts.path}{left}")


def check_engine_options(settings: Settings, refusal: str | None) -> Finding:
    """Whether the engine would take the settings. `refusal` is what it would say."""
    if refusal is None:
        parts = [f"engine {settings.engine.kind}", f"{settings.engine.max_sequences} sequences at once"]
        parts += [part for part in (speculation_text(settings),) if part]
        said = sameness_text(settings)
        return ok("settings", ", ".join(parts) + (f"; {said}" if said else ""))
    return problem("settings", refusal, "change it in tidegate.toml; `tidegate config` shows where each value is from")
