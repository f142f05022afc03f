"""A signal's handler is the one from before, whatever was put in front of it in C meanwhile."""

import faulthandler
import os
import signal
import threading
from pathlib import Path

from tidegate.engines.ray.kept_handler import kept_handler


def test_a_handler_that_was_set_in_c_meanwhile_is_gone(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _frame: heard.append(number))
    try:
        with (tmp_path / "stacks").open("w+") as file:

            def load() -> None:
                with kept_handler(signal.SIGUSR2):
                    faulthandler.register(signal.SIGUSR2, file=file, chain=True)

            thread = threading.Thread(target=load)
            thread.start()
            thread.join()
            os.kill(os.getpid(), signal.SIGUSR2)
            assert heard == [signal.SIGUSR2]
            assert (tmp_path / "stacks").read_text() == ""
    finally:
        faulthandler.unregister(signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, before)
