"""The Python that the checks run in: vLLM's packages, and on top of them tidegate with what is missing there."""

import re
import shutil
import sys
import venv
from pathlib import Path

from catalog import Start
from environment import attempt, say

ROOT = Path(__file__).resolve().parents[2]
NOT_NEEDED = ("llama-cpp-python",)
"""What tidegate asks for and an engine of vLLM's does not use; it would have to be compiled."""
OURS = "llguidance"
"""Of this one ours is taken: vLLM brings one that enforces less, and runs with ours as well."""
_STANZA = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)


def make_layer(start: Start) -> Path:
    """Returns the Python, made unless it is there for the same vLLM, lock and interpreter.

    It belongs to this checkout, and not to vLLM's folder, which others may use. Raises PeerTroubleError.
    """
    folder = ROOT / "build" / "vllm-check" / "venv"
    python = folder / "bin" / "python"
    (theirs,) = (start.folder / "venv").glob("lib/python*/site-packages")
    lock_text = missing(theirs)
    source = f"{theirs}\n{sys.version}\n{lock_text}"
    mark = folder / "made-from"
    if not mark.is_file() or mark.read_text("utf-8") != source:
        say(f"making {folder} (the first time only)")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        (ours,) = folder.glob("lib/python*/site-packages")
        (ours / "vllm.pth").write_text(f"{theirs}\n", "utf-8")
        lock = folder / "missing.lock"
        lock.write_text(lock_text, "utf-8")
        pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
        attempt((*pip, "--require-hashes", "-r", str(lock)), start)
        attempt((*pip, "--editable", str(ROOT)), start)
        mark.write_text(source, "utf-8")
    return python


def missing(theirs: Path) -> str:
    """Returns the part of our lock that is not among their packages."""
    text = (ROOT / "requirements" / "serve.lock").read_text("utf-8")
    starts = [match.start() for match in _STANZA.finditer(text)]
    stanzas = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    present = {normal(found.name.partition("-")[0]) for found in theirs.glob("*.dist-info")} | set(NOT_NEEDED)
    present.discard(OURS)
    return "".join(one for one in stanzas if normal(one.partition("==")[0]) not in present)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
