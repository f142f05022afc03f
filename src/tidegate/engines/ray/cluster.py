"""RayCluster: this process's tie to a Ray cluster, made once however many engines are on it. To be called aside.

Ray is loaded here and not before. It is kept from the console, from our signal handlers (those of Python it sets on
the main thread only, and `kept_handler.py` has the other) and from reporting usage.
"""

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar, cast

from tidegate.engines.ray.kept_handler import kept_handler

LOCAL = "local"
"""The address that stands for a Ray of our own on this machine, which ends with us."""


MAX_REPORT_CHARS = 1000

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class RayMissing(Exception):
    """The extra is not installed."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """`address` is `local`, `auto` (the Ray that runs on this machine) or HOST:PORT of a cluster's head."""

    address: str
    namespace: str


def load_ray(*, is_local: bool = False) -> ModuleType:
    """Returns the module. `is_local`: a Ray of our own is going to be started; nothing of it is to listen beyond this
    machine, which Ray reads from its environment when it is loaded. Raises RayMissing.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if is_local:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # an engine is what the machine is for
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise RayMissing("Ray is not installed: pip install 'tidegate[ray]'") from error


class RayCluster:
    """Cuts the tie in the end where it was made here. Its methods may be called on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_users = 0
        self._is_ours = False
        self._parent: _LastingThread | None = None

    def attach(self, where: ClusterAddress) -> ModuleType:
        """Returns Ray, connected. To be undone by `release`. Raises RayMissing, and whatever Ray does."""
        with self._lock:
            ray = load_ray(is_local=where.address == LOCAL)
            if not ray.is_initialized():
                self._parent = _LastingThread(lambda: _connect(ray, where))
                self._is_ours = True
            self._num_users += 1
            return ray

    def release(self) -> None:
        """The last user cuts the tie that was made here."""
        with self._lock:
            self._num_users -= 1
            if self._num_users == 0 and self._is_ours:
                self._is_ours = False
                with kept_handler(signal.SIGTERM):
                    load_ray().shutdown()
                if self._parent is not None:
                    self._parent.end()


class _LastingThread:
    """A thread that does one thing, and then lives until it is told to end.

    Ray has the kernel end the processes that it starts when their parent has gone, which for the kernel is the thread
    that started them (`PR_SET_PDEATHSIG`, prctl(2)).
    """

    def __init__(self, act: Callable[[], None]) -> None:
        """Returns when it is done. Raises what `act` does."""
        self._act = act
        self._fault: BaseException | None = None
        self._is_done, self._may_end = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="ray-parent", daemon=True).start()
        self._is_done.wait()
        if self._fault is not None:
            raise self._fault

    def end(self) -> None:
        self._may_end.set()

    def _run(self) -> None:
        try:
            self._act()
        except BaseException as fault:
            self._fault = fault
            self._is_done.set()
            return
        self._is_done.set()
        self._may_end.wait()


CLUSTER = RayCluster()
"""Ray knows one tie for each process."""


def _connect(ray: ModuleType, where: ClusterAddress) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Ray prints what its machines report to standard output, whatever it was told of logs.
    worker = importlib.import_module("ray._private.worker")
    if hasattr(worker, "print_to_stdstream"):
        setattr(worker, "print_to_stdstream", _log_report)  # noqa: B010 - no type of theirs names it
    options: dict[str, Any] = {"namespace": where.namespace, "log_to_driver": False, "configure_logging": False}
    if where.address == LOCAL:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    with kept_handler(signal.SIGTERM):
        ray.init(address=where.address, **options)


def _log_report(data: dict[str, Any], **_: object) -> None:
    for line in data.get("lines", ()):
        _log.info("Ray reports: %s", str(line)[:MAX_REPORT_CHARS])


def call_aside(call: Callable[[], Result]) -> "asyncio.Future[Result]":
    """Returns the future of a call that blocks, on a thread of its own.

    Ray cannot take a main thread's signal handlers there, and a call that never returns keeps no program from ending.
    Cancelling the future does not stop the call.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, fault: BaseException | None) -> None:
        if future.done():
            return
        if fault is not None:
            future.set_exception(fault)
        else:
            future.set_result(cast("Result", result))

    def run() -> None:
        result, fault = None, None
        try:
            result = call()
        except Exception as raised:
            fault = raised
        with contextlib.suppress(RuntimeError):  # the loop has gone
            loop.call_soon_threadsafe(tell, result, fault)

    threading.Thread(target=run, name="call to Ray", daemon=True).start()
    return future
