"""`tidegate serve`, called with the options of llama.cpp's `llama-server`: what its own tests start.

    llama_server.py --port 8080 --hf-repo ggml-org/models --hf-file bert-bge-small/ggml-model-f16.gguf --embedding ...

Every option is mapped, or named here as one that changes nothing; any other ends with exit code 2. No model is
fetched: `SUITE_MODELS` names the file that stands for each of the tests' models, `SUITE_NAMES` the further names that
callers may use, both as JSON; `SUITE_STATE` is the state folder.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

WITHOUT_VALUE = ("--embedding", "--reranking", "--offline", "--no-slots", "--no-jinja")
NOT_OURS = ("--temp", "--seed", "--hf-repo")
"""Defaults for sampling, which nothing is; the repository of the model."""


class UnknownOptionError(Exception):
    """An option that nobody has decided about."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the options do not say: a model's file by the name of the tests, further served names, the state folder."""

    models: dict[str, str]
    names: Sequence[str] = ()
    state_folder: str = "state"


@dataclass(slots=True)
class Given:
    """Options as they were given; those without a value are in `marks`."""

    values: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)


def read_options(arguments: Sequence[str]) -> Given:
    """Raises UnknownOptionError."""
    given = Given()
    rest = iter(arguments)
    for option in rest:
        if option in WITHOUT_VALUE:
            given.marks.add(option)
        elif option in NOT_OURS or option in MAPPED:
            given.values[option] = next(rest, "")
        else:
            raise UnknownOptionError(option)
    return given


SETTINGS = {"--batch-size": "TIDEGATE_ENGINE__MAX_STEP_TOKENS", "-fa": "TIDEGATE_ENGINE__FLASH_ATTENTION"}
SETTINGS |= {"--pooling": "TIDEGATE_ENGINE__POOLING"}
MAPPED = ("--port", "--host", "--alias", "--hf-file", "--ctx-size", "--parallel", "--ubatch-size", *SETTINGS)


def command_of(given: Given, surroundings: Surroundings) -> tuple[list[str], dict[str, str]]:
    """Returns the arguments of `tidegate`, and the settings that go into its environment.

    There a context is shared by all slots, and a prompt must fit into one of them. Raises UnknownOptionError for a
    model that no file stands for.
    """
    values = given.values
    model = surroundings.models.get(values.get("--hf-file", ""))
    if model is None:
        raise UnknownOptionError(f"--hf-file {values.get('--hf-file')}")
    slots = int(values.get("--parallel", "1"))
    arguments = ["serve", model, "--host", values.get("--host", "127.0.0.1"), "--port", values.get("--port", "8080")]
    arguments += ["--admin-port", "0", "--state-dir", surroundings.state_folder]
    arguments += ["--max-sequences", str(max(2, slots))]
    if "--ctx-size" in values:
        arguments += ["--max-model-len", str(int(values["--ctx-size"]) // slots)]
    for name in filter(None, (values.get("--alias"), *surroundings.names)):
        arguments += ["--served-model-name", name]
    settings = {setting: values[option] for option, setting in SETTINGS.items() if option in values}
    settings["TIDEGATE_ENGINE__CALIBRATE"] = "false"
    if given.marks & {"--embedding", "--reranking"}:
        settings["TIDEGATE_ENGINE__EMBEDDINGS"] = "on"
    return arguments, settings


def main() -> None:
    surroundings = Surroundings(
        json.loads(os.environ["SUITE_MODELS"]), json.loads(os.environ["SUITE_NAMES"]), os.environ["SUITE_STATE"]
    )
    try:
        arguments, settings = command_of(read_options(sys.argv[1:]), surroundings)
    except UnknownOptionError as error:
        sys.exit(f"llama_server.py: what is {error} to be?")
    program = Path(sys.executable).parent / "tidegate"
    os.execve(program, [str(program), *arguments], os.environ | settings)


if __name__ == "__main__":
    main()
