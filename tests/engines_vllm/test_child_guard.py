"""vLLM's process ends with the server that started it: a spawned process, and a parent that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

PROGRAM = """
import multiprocessing, os, sys, time
from tidegate.engines.vllm.child_guard import PARENT_VARIABLE, guard_child

def live(file):
    guard_child()
    with open(file + ".new", "w") as out:
        out.write(f"{os.getpid()} {os.getpgid(0)}")
    os.rename(file + ".new", file)
    time.sleep(600)

if __name__ == "__main__":
    if sys.argv[2] == "ours":
        os.environ[PARENT_VARIABLE] = str(os.getpid())
    child = multiprocessing.get_context("spawn").Process(target=live, args=(sys.argv[1],))
    child.start()
    child.join()
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_a_process_of_vllms_ends_with_a_server_of_ours_and_stays_under_others(tmp_path: Path, whose: str) -> None:
    program, told = tmp_path / "program.py", tmp_path / "told"
    program.write_text(PROGRAM)
    parent = subprocess.Popen([sys.executable, str(program), str(told), whose])
    try:
        until = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        pid, group = map(int, told.read_text().split())
        assert (group == pid) == (whose == "ours")
    finally:
        parent.kill()
        parent.wait()
    until = time.monotonic() + (30 if whose == "ours" else 0.3)
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert is_alive(pid) == (whose != "ours")
    if whose != "ours":
        os.kill(pid, signal.SIGKILL)
