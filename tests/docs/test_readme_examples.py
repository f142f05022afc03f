"""The README's examples work pasted, in order, against the server that `make serve` starts."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.server_thread import ServerThread

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = README.read_text("utf-8").partition("## Talk to it")[2].partition("## Settings")[0]
pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(300)]
BLOCKS = re.findall(r"```sh\n(.*?)```", EXAMPLES, re.DOTALL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block prints, all of them run by one shell as a person would."""
    folder = Path(sys.executable).parent
    if not (folder / "tidegate").exists():
        pytest.skip("the tidegate program is not installed beside this Python")
    with ServerThread("llama") as server:
        script = "\necho '=== next'\n".join(["", *BLOCKS])
        for old, new in {
            "http://127.0.0.1:8000": server.url,
            "http://127.0.0.1:9464": server.admin_url,
            ".venv/bin/": f"{folder}/",
            "8001": str(free_port()),
            "9465": str(free_port()),
            "8002": str(free_port()),
            "9466": str(free_port()),
        }.items():
            script = script.replace(old, new)
        folder = tmp_path_factory.mktemp("readme")
        command = ["bash", "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout.split("=== next\n")[1:]


EXPECTED: list[tuple[str, ...]] = [
    ('data: {"id":"chatcmpl-', '"finish_reason":"length"', "data: [DONE]"),
    ("34 + 60 tokens",),
    ('"count":34', '"<|im_start|>"', '" sea"'),
    ('{"status":"ready"}', "tidegate_generation_tokens_total 100", '{"object":"list","data":[]'),
    (),
    ('"content":"H"', '"content":"é"', '"content":"llo"', '"finish_reason":"stop"', "data: [DONE]"),
    ('"name":"ping","arguments":"{}"', '"finish_reason":"tool_calls"'),
    ('"content":"H', '"code":"engine_refused"'),
    ("cases pass", "no difference in"),
]


@pytest.mark.parametrize("index", range(len(EXPECTED)))
def test_an_example_prints_what_the_page_says(outputs: list[str], index: int) -> None:
    assert len(BLOCKS) == len(outputs) == len(EXPECTED)
    for words in EXPECTED[index]:
        assert words in outputs[index]


def test_the_failed_stream_has_no_end(outputs: list[str]) -> None:
    assert "[DONE]" not in outputs[7]
    assert '"finish_reason":"' not in outputs[7]
