"""An environment for each client, made once from its lock file under `build/client-suites/`."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clients import Client
from outcomes import CaseOutcome
from snippets import Snippet

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "client-suites"
LOCKS = ROOT / "requirements" / "clients"
LAST_LINES = 6
PATIENCE_S = 1200.0
"""For the tests of one client."""
INTERPRETERS = {".py": ("python",), ".sh": ("sh", "-eu"), ".mjs": ("node",)}
NOT_INHERITED = ("OPENAI_", "PYTHON", "LLM_", "LANGCHAIN_", "LANGSMITH_")


class EnvironmentTroubleError(Exception):
    """An environment cannot be made; the text says what was tried and what it answered."""


@contextmanager
def alone() -> Iterator[None]:
    """Holds the folder of environments for one run. Raises SystemExit while another run has it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "in-use").open("w") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another run uses {BUILD}") from None
        yield


def make_environment(client: Client) -> Path:
    """Returns the folder of a client's environment, made when it is not there or its lock has changed.

    Raises EnvironmentTroubleError when a program or the package index is missing, or a package cannot be installed.
    """
    folder = BUILD / client.name
    lock = HERE / "ai_sdk" / "package-lock.json" if client.is_node else LOCKS / f"{client.name}.lock"
    mark = folder / "made-from"
    if mark.exists() and mark.read_bytes() == lock.read_bytes():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client.is_node:
        _install_node_packages(folder)
    else:
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-input")
        _attempt((*pip, "--no-deps", "--require-hashes", "-r", str(lock)), folder)
    mark.write_bytes(lock.read_bytes())
    return folder


def _install_node_packages(folder: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise EnvironmentTroubleError("needs node 20 or newer and npm on the PATH")
    for source in (HERE / "ai_sdk").iterdir():
        if source.suffix == ".json":
            shutil.copy(source, folder)
    _attempt(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), folder)


def _attempt(command: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentTroubleError(
            f"`{' '.join(command)}` ended with {done.returncode}: {last_words(done.stderr or done.stdout)}"
        )


def last_words(log: str) -> str:
    """Returns the last lines of a program's output, without its warnings."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith(("WARNING", "npm warn"))]
    return " / ".join(lines[-LAST_LINES:])


def installed_version(client: Client, folder: Path) -> str:
    """Returns the version of the client's package in its environment."""
    if client.is_node:
        package = folder / "node_modules" / client.package / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])
    ask = f"import importlib.metadata as found; print(found.version({client.package!r}))"
    python = folder / "bin" / "python"
    return subprocess.run((python, "-c", ask), capture_output=True, text=True, check=True).stdout.strip()


def run_client(client: Client, folder: Path, addresses: dict[str, str]) -> str:
    """Runs a client's scenarios; returns what its test runner wrote as JUnit.

    Its output goes to `output.log` in the folder. Raises EnvironmentTroubleError when the runner wrote no report.
    """
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    scenario = HERE / client.scenario
    command: tuple[str | Path, ...]
    if client.is_node:
        scenario = Path(shutil.copy(scenario, folder))
        reporter = ("--test-reporter=junit", f"--test-reporter-destination={report}")
        command = ("node", "--test", *reporter, scenario)
    else:
        settings = ("-c", HERE / "scenarios" / "pytest.ini", f"--junitxml={report}")
        command = ("python", "-m", "pytest", "-q", *settings, *client.options, scenario)
    code = _run(command, folder, "output.log", addresses)
    if code is None or not report.exists():
        end = f"ended with {code} and no report" if code is not None else f"was stopped after {PATIENCE_S:.0f} s"
        raise EnvironmentTroubleError(f"the test runner {end}: see {folder}/output.log")
    return report.read_text("utf-8")


def run_snippet(snippet: Snippet, folder: Path) -> CaseOutcome:
    """Runs a client's snippet of docs/clients.md; its output goes to `snippet.log` in the folder."""
    script = folder / f"snippet{snippet.ending}"
    script.write_text(snippet.text, "utf-8")
    code = _run((*INTERPRETERS[snippet.ending], script), folder, "snippet.log", {})
    log = (folder / "snippet.log").read_text("utf-8", errors="replace")
    fault = None if code == 0 else f"ended with {code}: {last_words(log)}"
    return CaseOutcome("the snippet of docs/clients.md", fault)


def _run(command: tuple[str | Path, ...], folder: Path, log: str, addresses: dict[str, str]) -> int | None:
    """Runs a command in a client's environment, without the settings of whoever runs this.

    Returns its exit code; None when it had to be stopped.
    """
    private = {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    program = shutil.which(command[0], path=private["PATH"])
    with (folder / log).open("wb") as output:
        done = subprocess.Popen(
            (program or command[0], *command[1:]),
            cwd=folder,
            env=inherited | private | addresses,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return done.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_session(done)


def end_session(leader: "subprocess.Popen[bytes]") -> None:
    """Ends a program with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
