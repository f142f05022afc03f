"""The two servers that the clients talk to: the bundled model, and the scripted engine behind the scripting proxy."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from environments import BUILD
from scripting_proxy import scripting_proxy

READY = re.compile(r"ready on http://127\.0\.0\.1:(\d+)")
START_PATIENCE_S = 180.0
END_PATIENCE_S = 60.0
REAL_MODEL = "tidegate-model"
SCRIPTED_MODEL = "tidegate-scripted"
SCRIPTED_ALIAS = "tidegate-alias"
"""Another name of the same model; answers carry the first."""


@contextmanager
def serving(name: str, *flags: str) -> Iterator[int]:
    """Runs a server; yields its port. Raises SystemExit when it does not start, or ends otherwise than with 0."""
    log = BUILD / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [Path(sys.executable).parent / "tidegate", "serve", "--port", "0", "--admin-port", "0"]
    command += ["--state-dir", BUILD / f"{name}-state", "--served-model-name", name, *flags]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        port: list[int] = []
        is_ready = threading.Event()
        reader = threading.Thread(target=_keep_log, args=(server, log, port, is_ready), name=f"log of {name}")
        reader.start()
        try:
            if not is_ready.wait(START_PATIENCE_S) or not port:
                raise SystemExit(f"the server {name} did not start: see {log}")
            yield port[0]
        finally:
            server.terminate()
            code = server.wait(END_PATIENCE_S)
            reader.join()
    if code != 0:
        raise SystemExit(f"the server {name} ended with {code}: see {log}")


def _keep_log(server: "subprocess.Popen[str]", log: Path, port: list[int], is_ready: threading.Event) -> None:
    assert server.stderr is not None
    with log.open("w", encoding="utf-8") as kept:
        for line in server.stderr:
            kept.write(line)
            kept.flush()
            found = READY.search(line)
            if found is not None and not port:
                port.append(int(found[1]))
                is_ready.set()
    is_ready.set()


@contextmanager
def both_servers() -> Iterator[dict[str, str]]:
    """Runs both; yields the environment that tells a scenario where they are."""
    with ExitStack() as running:
        real = running.enter_context(serving(REAL_MODEL))
        upstream = running.enter_context(
            serving(SCRIPTED_MODEL, "--served-model-name", SCRIPTED_ALIAS, "--engine", "scripted")
        )
        scripted = running.enter_context(scripting_proxy(upstream))
        yield {
            "REAL_URL": f"http://127.0.0.1:{real}/v1",
            "REAL_MODEL": REAL_MODEL,
            "SCRIPTED_URL": f"http://127.0.0.1:{scripted}/v1",
            "SCRIPTED_MODEL": SCRIPTED_MODEL,
            "SCRIPTED_ALIAS": SCRIPTED_ALIAS,
        }
