"""Every schema of two suites as `response_format` of a running server: answered, or refused with code and field.

python bench/served_schemas.py --bench sample.jsonl --suite draft2020-12.json [--backend llguidance] [--every 1]

The server is a process of its own with the simulated engine, which writes what the schema allows until `max_tokens`.
What the backend itself says of a schema, asked here beside the server, must be what the server answers. An answer that
is neither 200 nor 400 is a fault, and so is an engine that does not stand at the end as it stood at the beginning.
"""

import argparse
import http.client
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness_path  # noqa: F401
from harness.schema_judge import byte_compiler
from schema_coverage import HARD, read_rows
from server_process import ServerProcess, serving
from tidegate.grammar.matcher import GrammarCompiler
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.registry import DEFAULT_BACKEND
from tidegate.inference.grammar_spec import JsonSchemaSpec

_PATIENCE_S = 60.0
STANDS = ("ready", "condition", "epoch", "process_id", "restarts", "stalls")
"""What `/admin/v1/engine` says of an engine that has not fallen."""


@dataclass
class Served:
    """What one family came to."""

    schemas: int = 0
    answered: int = 0
    refused: int = 0
    enforced_alone: int = 0
    codes: dict[str, int] = field(default_factory=dict)


@dataclass
class Asker:
    """One connection, made anew when the server closes it."""

    port: int
    model: str
    max_tokens: int
    connection: http.client.HTTPConnection | None = None

    def ask(self, schema: Any) -> tuple[int, Any]:
        wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        body = {"model": self.model, "messages": [{"role": "user", "content": "a"}], "max_tokens": self.max_tokens}
        sent = json.dumps({**body, "seed": 1, "response_format": wanted})
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        self.connection.request("POST", "/v1/chat/completions", sent, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        parsed = json.loads(answer.read())
        if answer.will_close:
            self.connection.close()
            self.connection = None
        return answer.status, parsed


def fault_of(status: int, parsed: Any, is_enforced: bool) -> str | None:
    """Returns what is wrong with an answer, or None."""
    if status == 200:
        text = parsed["choices"][0]["message"]["content"]
        if not is_enforced:
            return "answered, and the backend refuses it"
        return None if text else f"an empty text, ended as {parsed['choices'][0]['finish_reason']}"
    error = parsed.get("error", {})
    if status != 400:
        return f"{status} {error.get('code')}: {error.get('message')}"
    if not error.get("code") or not str(error.get("param")).startswith("response_format"):
        return f"400 with code {error.get('code')} and param {error.get('param')}"
    return f"refused, and the backend enforces it: {error['code']}: {error['message']}" if is_enforced else None


def ask_all(
    asker: Asker, compiler: GrammarCompiler, rows: list[tuple[str, Any]]
) -> tuple[dict[str, Served], list[str]]:
    families: dict[str, Served] = {}
    faults: list[str] = []
    for number, (family, schema) in enumerate(rows):
        served = families.setdefault(family, Served())
        alone = compiler.compile(JsonSchemaSpec(json.dumps(schema).encode()))
        # OpenAI's field takes objects only: `true` and `false` are schemas that cannot be asked for.
        is_enforced = isinstance(schema, dict) and not isinstance(alone, GrammarRefusal)
        status, parsed = asker.ask(schema)
        served.schemas += 1
        served.enforced_alone += is_enforced
        served.answered += status == 200
        served.refused += status == 400
        if status != 200:
            code = f"{status} {parsed.get('error', {}).get('code')}"
            served.codes[code] = served.codes.get(code, 0) + 1
        fault = fault_of(status, parsed, is_enforced)
        if fault is not None:
            faults.append(f"{family}, schema {number}: {fault[:300]}")
        if number % 200 == 199:
            print(f"  {number + 1} of {len(rows)}, {len(faults)} faults", file=sys.stderr, flush=True)
    return families, faults


def print_table(families: dict[str, Served]) -> None:
    print("| family | schemas | 200 | 400 | enforced by the backend alone |")
    print("|---|---|---|---|---|")
    for name, served in families.items():
        print(f"| {name} | {served.schemas} | {served.answered} | {served.refused} | {served.enforced_alone} |")
    practice = [s for name, s in families.items() if name not in HARD and not name.startswith("suite")]
    counts = [sum(s.schemas for s in practice), sum(s.answered for s in practice), sum(s.refused for s in practice)]
    print(f"\nfrom practice: {counts[1]} of {counts[0]} answered, {counts[2]} refused")
    codes: dict[str, int] = {}
    for served in families.values():
        for code, count in served.codes.items():
            codes[code] = codes.get(code, 0) + count
    print("refusals: " + ", ".join(f"{count} {code}" for code, count in sorted(codes.items())))


def at_rest(engine: dict[str, Any]) -> dict[str, int]:
    """Returns counts that are 0 where no request is left."""
    gauges, admission = engine["gauges"], engine["admission"]
    counts = {key: gauges[key] for key in ("num_waiting", "num_running", "num_held", "blocks_used", "num_constrained")}
    return counts | {key: admission[key] for key in ("num_requests", "num_sequences", "num_blocks", "num_slots")}


def run(server: ServerProcess, options: argparse.Namespace) -> int:
    rows = [(family, schema) for family, schema, _ in read_rows(options.bench, options.suite)][:: options.every]
    before: dict[str, Any] = server.engine()
    with_models = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
    with_models.request("GET", "/v1/models")
    model = json.loads(with_models.getresponse().read())["data"][0]["id"]
    began = time.perf_counter()
    families, faults = ask_all(Asker(server.port, model, options.max_tokens), byte_compiler(options.backend)[0], rows)
    print_table(families)
    print(f"{len(rows)} requests in {time.perf_counter() - began:.0f} s, server {server.cpu_s():.0f} s of CPU")
    after: dict[str, Any] = server.engine()
    faults += [
        f"the engine: {key} was {before[key]} and is {after[key]}" for key in STANDS if before[key] != after[key]
    ]
    held = {key: value for key, value in at_rest(after).items() if value}
    if held:
        faults.append(f"the engine still holds {held}")
    print(f"engine at the end: {', '.join(f'{key} {after[key]}' for key in STANDS)}")
    print(f"{len(faults)} faults")
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--backend", default=DEFAULT_BACKEND)
    parser.add_argument("--every", type=int, default=1, help="ask with every n-th schema only")
    parser.add_argument("--max-tokens", type=int, default=8)
    options = parser.parse_args()
    settings = {
        "TIDEGATE_GRAMMAR__BACKEND": options.backend,
        "TIDEGATE_LIMITS__GRAMMAR_COMPILE_MS": "30000",  # whatever else this machine does
        "TIDEGATE_ENGINE__SIMULATED_MODEL": "hash",
    }
    with serving("--engine", "simulated", **settings) as server:
        return run(server, options)


if __name__ == "__main__":
    sys.exit(main())
