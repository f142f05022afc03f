"""`llm`, the command line: prompts, streams, schemas, tools and a conversation, over extra-openai-models.yaml."""

import json
import os
import subprocess
from pathlib import Path

import pytest

PLAIN = "The tide is high at noon, and again at midnight."
MODELS = """
- model_id: {name}
  model_name: {model}
  api_base: {url}
  api_key_name: tidegate
  supports_tools: true
  supports_schema: true
  can_stream: true
"""
TOOL = """
def tide_at(port: str) -> str:
    "Tells the tide at a port."
    return f"high at {port}"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llm")
    parts = [
        MODELS.format(name=kind.lower(), model=os.environ[f"{kind}_MODEL"], url=os.environ[f"{kind}_URL"])
        for kind in ("REAL", "SCRIPTED")
    ]
    parts.append(MODELS.format(name="lost", model="no-such-model", url=os.environ["REAL_URL"]))
    (folder / "extra-openai-models.yaml").write_text("".join(parts), "utf-8")
    (folder / "keys.json").write_text('{"tidegate": "none"}', "utf-8")
    return folder


def llm(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"LLM_USER_PATH": str(home)}
    return subprocess.run(
        ("llm", *arguments), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def said(home: Path, *arguments: str) -> str:
    done = llm(home, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["streamed", "whole"])
def test_a_prompt_is_answered(home: Path, flags: tuple[str, ...]) -> None:
    assert said(home, "-m", "scripted", *flags, "When is the tide high?") == PLAIN


def test_the_real_model_says_the_same_streamed_and_whole(home: Path) -> None:
    asked = ("-m", "real", "-o", "temperature", "0", "-o", "max_tokens", "12", "-s", "Be brief.", "What is salty?")
    streamed = said(home, *asked)
    assert streamed
    assert streamed == said(home, "--no-stream", *asked)


def test_the_usage_is_told(home: Path) -> None:
    done = llm(home, "-m", "scripted", "--usage", "When is the tide high?")
    assert "12 output" in done.stderr


def test_a_conversation_goes_on(home: Path) -> None:
    said(home, "-m", "scripted", "When is the tide high?")
    assert said(home, "-c", '[[{"say": "You are welcome."}]]') == "You are welcome."


@pytest.mark.parametrize("kind", ["real", "scripted"])
@pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["streamed", "whole"])
def test_a_schema_is_kept(home: Path, kind: str, flags: tuple[str, ...]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "port": {"enum": ["Brest", "Dover"]},
            "height_m": {"type": "integer", "minimum": 0, "maximum": 20},
        },
        "required": ["port", "height_m"],
        "additionalProperties": False,
    }
    asked = ("-m", kind, "-o", "temperature", "0", *flags, "--schema", json.dumps(schema), "The tide of 7 metres?")
    tide = json.loads(said(home, *asked))
    assert tide["port"] in ("Brest", "Dover")
    assert 0 <= tide["height_m"] <= 20


def test_a_short_schema_is_kept(home: Path) -> None:
    assert json.loads(said(home, "-m", "scripted", "--schema", "name, age int", "'Ida' is 7")) == {
        "name": "Ida",
        "age": 7,
    }


@pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["streamed", "whole"])
def test_a_tool_is_run_and_its_answer_read(home: Path, flags: tuple[str, ...]) -> None:
    cue = '[[{"calls": [["tide_at", {"port": "Brest"}], ["tide_at", {"port": "Dôver 🌊"}]]}]]'
    assert said(home, "-m", "scripted", *flags, "--functions", TOOL, cue).endswith("high at Brest; high at Dôver 🌊")


def test_an_unknown_model_is_told_in_the_servers_words(home: Path) -> None:
    done = llm(home, "-m", "lost", "Hi")
    assert done.returncode == 1
    assert "no-such-model" in done.stderr


def test_a_stream_that_fails_midway_is_told(home: Path) -> None:
    done = llm(home, "-m", "scripted", '[[{"say": "The tide is high.", "error_after": 2}]]')
    assert done.returncode == 1
    assert "Error" in done.stderr
