"""Programs of the system that tests start."""

import os
import shutil
import sys
from pathlib import Path

import pytest

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str:
    """Returns a program's path; packages may bring it. Without it the test is skipped; it fails where
    TIDEGATE_TESTS_NEED_PROGRAMS is set.
    """
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", ""), _SYSTEM_PATH]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        reason = f"the program {name} is not installed"
        if os.environ.get("TIDEGATE_TESTS_NEED_PROGRAMS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
