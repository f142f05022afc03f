"""The examples in docs/structured_output.md work when they are pasted, in order, against the bundled model."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.server_thread import ServerThread

PAGE = (Path(__file__).parents[2] / "docs" / "structured_output.md").read_text("utf-8")
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL)
pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(300)]

EXPECTED: list[tuple[str, ...]] = [
    (r'"content":"\{.*\\"colour\\".*\\"(black|white)\\".*\\"lives\\".*[1-9].*\}"', '"finish_reason":"stop"'),
    (r'"text":"(blue|grey)"', r"data: \[DONE\]", r'"text":"[0-9]{1,2}( \+ [0-9]{1,2})*( \+?)?"'),
    (r"colour='(black|white)' is_hungry=(True|False)\n(yes|no)\n",),
    (r'"finish_reason":"(stop|length)"',),
    (r'"param":"structured_outputs.json.properties.a.pattern","code":"unsupported_schema"',),
]


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    with ServerThread("llama") as server:
        found = []
        for language, source in BLOCKS:
            program = ["bash", "-c"] if language == "sh" else [sys.executable, "-c"]
            text = source.replace("http://127.0.0.1:8000", server.url)
            done = subprocess.run([*program, text], capture_output=True, text=True, timeout=120, check=True)
            found.append(done.stdout)
    return found


@pytest.mark.parametrize("index", range(len(EXPECTED)))
def test_an_example_prints_what_the_page_says(outputs: list[str], index: int) -> None:
    assert len(BLOCKS) == len(outputs) == len(EXPECTED)
    for pattern in EXPECTED[index]:
        assert re.search(pattern, outputs[index]), outputs[index]
