"""Gives the recorded answers of a run to the official Python client, and looks for accusations that it contradicts.

    python bench/peers/client_check.py RECORDING REPORT.json

Needs the package `openai`, and `src` on the path. Three questions, for the cases that passed and for those that failed:

- Does the client read what the suite read? Text, calls and finish reasons of each answer, whole and streamed.
- Does the client's own type refuse an answer of a server of which no case finds the shape at fault?
- Is an answer's shape called worse than a nuisance where the client's types allow it and it raises nothing?

Prints what it found, and for each failing case what the client does. Exit status 1 where something is found.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from official_client import Reading, is_readable, read

from tidegate.conformance.answer import read_answer
from tidegate.conformance.recording.files import read_recording
from tidegate.conformance.recording.format import Recording
from tidegate.conformance.wire.exchange import Exchange

SHAPE_CHECKS = {
    "chat_members",
    "chunk_members",
    "completion_members",
    "completion_chunk_members",
    "has_one_value",
    "has_nullable_members",
    "has_text_code",
    "tells_role_first",
}
"""Checks whose faults are of the form of an answer, and of nothing that it says."""
PRELIMINARY = {"generates", "has_status", "has_answer"}


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    recording = read_recording(Path(sys.argv[1]))
    cases = json.loads(Path(sys.argv[2]).read_text())["cases"]
    read_otherwise, contradicted, does = [], [], []
    refused: Counter[str] = Counter()
    num_read = 0
    for case in cases:
        if case["outcome"] not in ("pass", "fail"):
            continue
        readings = [(exchange, read(exchange)) for exchange in exchanges_of(recording, case["id"])]
        num_read += len(readings)
        read_otherwise += [line for exchange, reading in readings for line in differences(case, exchange, reading)]
        if case["outcome"] == "pass":
            refused.update(f"{place} ({case['id']})" for _, reading in readings for place in reading.refused)
        else:
            contradicted += contradictions(case, readings)
            does.append(f"  {case['id']} [{case['severity']}]: {summary(readings)}")
    sys.stdout.write(f"answers read by the client: {num_read}\n")
    say("the client reads otherwise than the suite", read_otherwise)
    say("accusations that the client contradicts", contradicted)
    say("what the client's types refuse in cases that pass", [f"  {n} x {what}" for what, n in refused.most_common(40)])
    say("what the client does in cases that fail", does)
    return 1 if read_otherwise or contradicted else 0


def exchanges_of(recording: Recording, case_id: str) -> list[Exchange]:
    runs = recording.runs.get(case_id, ())
    return [
        exchange
        for run in runs
        for exchanges in run.evidence.values()
        for exchange in exchanges
        if is_readable(exchange)
    ]


def differences(case: dict[str, Any], exchange: Exchange, reading: Reading) -> Iterable[str]:
    """Yields where the client reads another answer than the suite did: then one of them misreads."""
    if exchange.status != 200 or reading.raised:
        return
    ours = {
        index: (
            choice.text,
            tuple((call.name, call.arguments) for _, call in sorted(choice.tool_calls.items())),
            choice.finish_reason,
        )
        for index, choice in read_answer(exchange).choices.items()
    }
    if ours != reading.choices:
        both = f"client {short(reading.choices)}, suite {short(ours)}"
        yield f"  {case['id']} ({case['outcome']}), {exchange.ask}: {both}"


def contradictions(case: dict[str, Any], readings: list[tuple[Exchange, Reading]]) -> Iterable[str]:
    """Yields what is called worse than a nuisance though the client's types allow it and nothing raises."""
    checks = {check["name"] for check in case["checks"]} - PRELIMINARY
    if case["severity"] == "nuisance" or not checks or not checks <= SHAPE_CHECKS:
        return
    asks = {fault["ask"] for fault in case["faults"]}
    accused = [reading for exchange, reading in readings if exchange.ask in asks]
    if accused and not any(reading.raised or reading.refused for reading in accused):
        yield f"  {case['id']} [{case['severity']}]: {case['faults'][0]['says']}"


def summary(readings: list[tuple[Exchange, Reading]]) -> str:
    """Returns what the client did with the answers of one case, each thing once."""
    done = Counter(
        (f"raises {reading.raised}" if reading.raised else f"reads {len(reading.choices)} choices")
        + (f", types refuse {', '.join(sorted(reading.refused)[:2])}" if reading.refused else "")
        for _, reading in readings
    )
    return "; ".join(f"{n} x {what}" for what, n in done.most_common()) or "no answer that it would have asked for"


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else text[:159] + "…"


def say(title: str, lines: list[str]) -> None:
    sys.stdout.write(f"{title}: {len(lines)}\n" + "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
