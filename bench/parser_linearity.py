"""Whether every family's parser takes time linear in the text, whatever a model writes.

python bench/parser_linearity.py [--bytes 1048576] [--families hermes,glm45] [--chunk 4096]

Each family reads texts of several adversarial shapes, made of its own markup, at a size and at half of it. The ratio of
the two times is 2 where work is linear and 4 where it is quadratic. Times are of the CPU, the least of two. All shapes
are taken at a part of the size, and the one with the largest ratio, and the slowest, at the whole size. Text arrives
in chunks; the shape with the largest ratio, once more, in tokens of 4 characters.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from harness.parsed_output import TOOLS
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tool_format import ToolFormat
from tidegate.parsers.tool_parser import ToolParser

_TOKEN = 4
_ROUNDS = 2


def shapes_of(form: ToolFormat) -> Iterator[tuple[str, str, str]]:
    """Yields a name, a beginning, and what is repeated behind it."""
    before, _, _ = form.example.partition("Brest")
    opening = (*form.opens, "<|channel|>" if form.name == "harmony" else "<")[0]
    closing = (*form.closes, "<|call|>" if form.name == "harmony" else "]")[0]
    call = form.example.replace("tide_at", "nope")
    yield "openings", "", opening
    yield "openings all but their end", "", opening[:-1]
    yield "openings with a blank", "", opening + "\n"
    yield "closings", "", closing
    yield "calls of nobody", "", call
    yield "whole calls", "", form.example + "\n"
    yield "beginnings of calls", "", before
    yield "a long string", before, "ab "
    yield "a string of quotes", before, '"'
    yield "a string of backslashes", before, "\\"
    yield "a string of escapes", before, "\\u00e9"
    yield "a string of marker beginnings", before, closing[:-1]
    yield "nested lists", before[: before.rindex("port")] + "port", "["
    yield "nested objects", before[: before.rindex("port")] + "port", '{"a":'
    yield "a name without end", opening, "a"
    yield "blanks", opening, " \n"
    yield "less-than signs", "", "<"
    yield "braces", "", "{"


def seconds_of(form: ToolFormat, text: str, chunk: int) -> float:
    """Returns the least CPU time of a few rounds, in seconds."""
    pieces = [text[at : at + chunk] for at in range(0, len(text), chunk)]
    tools = OfferedTools(TOOLS.items())
    times = []
    for _ in range(_ROUNDS):
        ids = itertools.count()
        parser = ToolParser(form, tools, lambda ids=ids: f"call_{next(ids)}")  # type: ignore[misc]
        began = time.process_time()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        times.append(time.process_time() - began)
    return min(times)


def ratio_of(form: ToolFormat, shape: tuple[str, str, str], size: int, chunk: int) -> tuple[float, float]:
    """Returns the ratio of the times for a text and for its half, and the time for the text."""
    _, start, unit = shape
    text = (start + unit * (size // len(unit) + 1))[:size]
    half, whole = seconds_of(form, text[: size // 2], chunk), seconds_of(form, text, chunk)
    return whole / max(half, 1e-4), whole


def row_of(form: ToolFormat, size: int, chunk: int) -> str:
    """Returns one family's row of the table."""
    found = [(*ratio_of(form, shape, size // 32, chunk), shape) for shape in shapes_of(form) if shape[2]]
    steepest = max(found, key=lambda item: item[0])[2]
    slowest = max(found, key=lambda item: item[1])[2]
    ratio, _ = ratio_of(form, steepest, size, chunk)
    slow_ratio, elapsed_s = ratio_of(form, slowest, size, chunk)
    by_token, _ = ratio_of(form, steepest, size // 8, _TOKEN)
    return (
        f"| {form.name} | {ratio:.2f} ({steepest[0]}) | {slow_ratio:.2f} ({slowest[0]}) | {elapsed_s:.2f} s "
        f"| {by_token:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--chunk", type=int, default=4096)
    parser.add_argument("--families", default=",".join(FAMILIES))
    options = parser.parse_args()
    print("| family | ratio, steepest shape | ratio, slowest shape | its time | ratio, token by token |")
    print("|---|---|---|---|---|")
    for name in options.families.split(","):
        print(row_of(FAMILIES[name], options.bytes, options.chunk), flush=True)


if __name__ == "__main__":
    main()
