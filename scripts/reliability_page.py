"""docs/reliability.md from the promises and from the tests that name them: `python scripts/reliability_page.py`.

A test names what it proves in a comment on its `def` line, `# DL-2 SSE-4`, or in the id of a parameter. Prints what is
missing, and ends with status 1 when something is: a promise without a test and without a reason, or an unknown id.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reliability_promises import PROMISES, Promise

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
ID = re.compile(r"\b(?:IDEM|OVL|DL|SSE|SLOW|ERR|RL|LIFE|ISO|SEC)-\d+\b")
GROUPS = {
    "IDEM": "Idempotency",
    "OVL": "Overload and admission",
    "DL": "Deadlines and cancellation",
    "SSE": "Streams",
    "SLOW": "Slow and hostile peers",
    "ERR": "Errors",
    "RL": "Rate limits",
    "LIFE": "Start, drain, engine death, long runs",
    "ISO": "Isolation",
    "SEC": "Advisories turned into tests",
}
MISSING = "**missing**"
INTRODUCTION = """# Reliability

What the server promises when things go wrong, and the test that proves each promise. [CONTRACT.md](../CONTRACT.md) says
what callers see, [architecture.md](architecture.md) how it works, [limits.md](limits.md) where each bound is.

Made by `python scripts/reliability_page.py` from `scripts/reliability_promises.py` and the tests; a test holds the page
equal to both.

How they are proven, beside plain tests:

- **The fault matrix** (`tests/e2e/test_fault_matrix.py`, `test_fault_matrix_server.py`): a request that waits at the
  gate, waits in the engine, is read, generates, or is about to end, meets a client that closes or resets, a reader that
  stalls, an engine that fails it, an engine that is killed, a server that is told to end, or its deadline; chat,
  completions, and several prompts with several choices; streamed and whole. After each fault every permit, block, task
  and descriptor is back.
- **The accounting identity** (`tests/harness/accounting.py`): received = completed + refused + aborted + failed,
  nothing waits, and every token that was charged was delivered. Asked after the matrix, and after a soak.
- **The fence under random schedules** (`tests/engines/test_fence_schedules.py`): late, doubled and delayed outputs of
  workers that are gone never reach anybody, and are counted.
- **The soak** (`bench/soak.py`): half an hour of all of it at once.
"""


@dataclass(frozen=True, slots=True, order=True)
class Proof:
    """A test that names an id. `name` is empty where a parameter's id does."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"`{self.file.removeprefix('tests/')}`" + (f" {self.name.replace('_', ' ')}" if self.name else "")


def collect(tests: Path) -> dict[str, set[Proof]]:
    """Returns the proofs of each id that any test names."""
    found: dict[str, set[Proof]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        file = path.relative_to(tests.parent).as_posix()
        text = path.read_text("utf-8")
        for requirement, name in [*_named_on_def_lines(text), *_named_by_parameters(text)]:
            found.setdefault(requirement, set()).add(Proof(file, name))
    return found


def _named_on_def_lines(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for line in lines[node.lineno - 1 : node.body[0].lineno - 1]:
                comment = line.partition("  # ")[2]
                yield from ((requirement, node.name.removeprefix("test_")) for requirement in ID.findall(comment))


def _named_by_parameters(text: str) -> Iterator[tuple[str, str]]:
    """Strings that begin with an id: keys of tables of cases, and `id=` of parameters."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            head = re.match(rf"(?:{ID.pattern}[ ,/]*)+", node.value)
            yield from ((requirement, "") for requirement in ID.findall(head[0] if head else ""))


def render(proofs: dict[str, set[Proof]]) -> str:
    parts = [INTRODUCTION]
    for prefix, title in GROUPS.items():
        parts.append(
            f"\n## {title}\n\n| id | promise | proven by | figure, or what it leaves out |\n|---|---|---|---|\n"
        )
        parts += [
            _row(requirement, promise, proofs.get(requirement, set()))
            for requirement, promise in PROMISES.items()
            if requirement.startswith(prefix + "-")
        ]
    return "".join(parts)


def _row(requirement: str, promise: Promise, proofs: Iterable[Proof]) -> str:
    names = {proof for proof in proofs if proof.name}
    files = {proof.file for proof in names}
    shown = sorted(names | {proof for proof in proofs if proof.file not in files})
    cell = "<br>".join(map(str, shown)) or (f"does not apply yet: {promise.why_not}" if promise.why_not else MISSING)
    return f"| {requirement} | {promise.text} | {cell} | {promise.note} |\n"


def missing(proofs: dict[str, set[Proof]]) -> list[str]:
    """Returns the ids with neither a test nor a reason."""
    return [name for name, promise in PROMISES.items() if not promise.why_not and name not in proofs]


def unknown(proofs: dict[str, set[Proof]]) -> list[str]:
    """Returns the ids that tests name and nobody promised."""
    return sorted(set(proofs) - set(PROMISES))


def main() -> int:
    proofs = collect(ROOT / "tests")
    PAGE.write_text(render(proofs), "utf-8")
    for what, names in (("missing", missing(proofs)), ("unknown", unknown(proofs))):
        if names:
            print(f"{what}: {', '.join(names)}")
    num_proven = sum(name in proofs for name in PROMISES)
    print(f"{num_proven} of {len(PROMISES)} promises have tests")
    return 1 if missing(proofs) or unknown(proofs) else 0


if __name__ == "__main__":
    sys.exit(main())
