"""What failed in a parallel run, once more, one test at a time: `python scripts/run_failed_alone.py EXIT_CODE`.

Many tests start servers and wait for them; on a busy machine one may come too late for reasons that are not ours. A
test that fails alone too has failed. One that passes alone is named: it depends on its neighbours or on the machine,
and has to be mended. More than a few failures are no coincidence and are not run again.
"""

import json
import subprocess
import sys
from pathlib import Path

TESTS_FAILED = 1
"""pytest's exit code when it ran and tests failed; any other says that something else is wrong."""
MOST_TESTS = 8
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(exit_code: int) -> int:
    """Returns 0 when every failed test passes alone, else the exit code of the run that says otherwise."""
    failed = sorted(json.loads(LAST_FAILED.read_text("utf-8"))) if LAST_FAILED.exists() else []
    if exit_code != TESTS_FAILED or not 0 < len(failed) <= MOST_TESTS:
        return exit_code
    _say(f"==> {len(failed)} failed beside others; once more, alone")
    again = subprocess.run([sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures", "none"])
    if again.returncode == 0:
        _say("==> passed alone, but not beside others; these need mending:", *(f"    {name}" for name in failed))
    return again.returncode


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
