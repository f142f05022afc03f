"""What runs in vLLM's own process, as a plugin of vLLM's: it ends with the server that started it.

vLLM's process does not notice that its parent was killed, and would keep its memory, and a GPU, for ever. vLLM loads
the plugins of `vllm.general_plugins` in each of its processes before anything else; this one does nothing where the
parent is no server of ours. It also leaves the group of processes of a terminal: Control-C is for the server, which
drains.
"""

import contextlib
import multiprocessing
import os
import threading
from multiprocessing.process import BaseProcess

PARENT_VARIABLE = "TIDEGATE_VLLM_PARENT"
"""Holds the process id of the server."""
ORPHAN_STATUS = 70


def guard_child() -> None:
    """Called by vLLM. Harmless anywhere, however often."""
    parent = multiprocessing.parent_process()
    if parent is None or os.environ.get(PARENT_VARIABLE) != str(parent.pid):
        return
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    threading.Thread(target=_end_with, args=(parent,), name="watch over the server", daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(ORPHAN_STATUS)
