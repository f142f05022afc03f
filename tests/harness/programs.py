"""Programs of the system that tests start."""

import os
import shutil

import pytest

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str:
    """Returns a program's path. Without it the test is skipped; it fails where TIDEGATE_TESTS_NEED_PROGRAMS is set."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + _SYSTEM_PATH)
    if found is None:
        reason = f"the program {name} is not installed"
        if os.environ.get("TIDEGATE_TESTS_NEED_PROGRAMS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
