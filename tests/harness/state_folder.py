"""A state folder for one server under test, so that none touches the home folder of whoever runs the tests."""

import shutil
import tempfile
import weakref


def lend_state_folder(owner: object) -> str:
    """Returns a new private folder that goes when `owner` does."""
    folder = tempfile.mkdtemp(prefix="tidegate-test-state-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder
