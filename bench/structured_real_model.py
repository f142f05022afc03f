"""Schemas of jsonschemabench filled by the real model through the server: how many answers are right.

python bench/structured_real_model.py [--schemas 200] [--bench sample.jsonl] [--max-tokens 512]

Each schema is a `response_format`, streamed and whole in turn, at temperature 1 with a fixed seed. An answer that
ended by itself must be valid by a validator with formats; one that the budget cut must be the beginning of a valid
value. The engine is llama.cpp with the bundled model.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from harness.benchmark_schemas import SAMPLE, BenchmarkSchema, enforced_schemas, judge
from harness.event_stream import read_stream
from harness.raw_http import RawClient
from harness.server_thread import ServerThread

CHAT = "/v1/chat/completions"
_PATIENCE_S = 1800.0


def write(server: ServerThread, one: BenchmarkSchema, *, is_stream: bool, max_tokens: int) -> tuple[str, str, str]:
    """Returns text, finish reason, and what went wrong before there was any."""
    body: dict[str, Any] = {
        "model": server.model,
        "messages": [{"role": "user", "content": "Invent an example as JSON."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": one.schema}},
        "max_tokens": max_tokens,
        "seed": 7,
        "stream": is_stream,
    }
    with RawClient(server.port, timeout_s=_PATIENCE_S) as client:
        client.post(CHAT, body)
        answer = client.read_answer()
    if answer.status != 200:
        return "", "", f"{answer.status} {answer.body[:200]!r}"
    if is_stream:
        stream = read_stream(answer.body)
        return stream.content(), "".join(stream.finish_reasons()), ""
    choice = answer.json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"], ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--bench", type=Path, default=SAMPLE)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--parallel", type=int, default=8)
    arguments = parser.parse_args()
    schemas = enforced_schemas(arguments.schemas, arguments.bench)
    counts: Counter[str] = Counter()
    started_at = time.monotonic()
    with (
        ServerThread("llama", model__max_model_len=2048, engine__threads=1) as server,
        ThreadPoolExecutor(arguments.parallel) as pool,
    ):

        def fill(number: int) -> str:
            one = schemas[number]
            text, finish, fault = write(server, one, is_stream=bool(number % 2), max_tokens=arguments.max_tokens)
            wrong = fault or judge(one.schema, text, finish)
            if wrong:
                print(f"{one.name}: {wrong}\n  {text[:200]}")
            return "wrong" if wrong else finish

        for word in pool.map(fill, range(len(schemas))):
            counts[word] += 1
    print(
        f"{len(schemas)} schemas in {time.monotonic() - started_at:.0f} s: {counts['stop']} answers valid, "
        f"{counts['length']} cut and beginnings of valid ones, {counts['wrong']} wrong"
    )
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
