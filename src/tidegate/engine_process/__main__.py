"""The engine process: `python -m tidegate.engine_process --socket PATH --epoch N --backend NAME --options JSON`.

Listens on a Unix socket in a private folder at once, and answers on it when the model is loaded. Exit codes are
`engine/exit_code.py`. SIGTERM ends it cleanly before the next step; SIGINT is ignored, since a terminal's Ctrl-C is
for its parent; it does not outlive its parent.
"""

import argparse
import faulthandler
import os
import signal
import socket
import stat
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import FrameType

from tidegate.engine.exit_code import EngineExit
from tidegate.engine.options import EngineOptions, OptionsError, decode_options
from tidegate.engine_process.log import JsonLog
from tidegate.engine_process.loop import LoopSockets, StepLoop
from tidegate.engine_process.parent import ParentWatch, die_with_parent
from tidegate.engine_process.switchboard import Switchboard
from tidegate.engine_process.wiring import build_engine
from tidegate.system import SystemClock, mint_life


class FolderError(Exception):
    """The socket cannot be made there."""


def main(arguments: list[str]) -> EngineExit:
    """Runs one engine from start to end; returns how it ended."""
    clock = SystemClock()
    args = _parse(arguments)
    log = JsonLog(clock, args.epoch)
    stop = _catch_signals()
    die_with_parent()
    parent = ParentWatch(args.parent_id)
    if parent.is_gone:
        return EngineExit.CLEAN
    try:
        options = decode_options(args.options, args.backend)
        listener = open_listener(Path(args.socket))
    except (OptionsError, FolderError) as error:
        log.write("error", "engine cannot start", error=str(error))
        return EngineExit.USAGE
    try:
        return _serve(options, args.epoch, LoopSockets(listener, stop), parent, log)
    finally:
        listener.close()
        Path(args.socket).unlink(missing_ok=True)


def _serve(
    options: EngineOptions,
    epoch: int,
    sockets: LoopSockets,
    parent: ParentWatch,
    log: JsonLog,
) -> EngineExit:
    clock = SystemClock()
    log.write("info", "engine starting", backend=options.backend)
    started_at = clock.now()
    try:
        engine = build_engine(options, clock)
    except Exception as error:
        # Whatever a library raises while it loads a file that somebody named: the operator needs its words.
        log.write("error", "engine cannot start", error=str(error), traceback=traceback.format_exc())
        return EngineExit.START_FAILED
    try:
        # From here on a signal only wakes the loop, which ends between two steps.
        signal.signal(signal.SIGTERM, _ignore)
        if engine.grammars.fault is not None:
            log.write("warning", "no grammars", backend=options.grammar_backend, why=engine.grammars.fault)
        if options.speculative != "off" and not engine.backend.caps.can_truncate:
            log.write("warning", "nothing is guessed: the cache of this model cannot be cut")
        if options.prefix_cache and options.backend == "llama" and not engine.core.model.has_prefix_cache:
            log.write("warning", "no prefix cache: the memory of this model cannot be cut and shared")
        log.write(
            "info",
            "engine ready",
            build=engine.core.model.build,
            load_s=round(clock.now() - started_at, 3),
            prefill_chunk_tokens=engine.core.model.prefill_chunk_tokens,
        )
        board = Switchboard(engine.core, epoch, engine.core.model, mint_life())
        loop = StepLoop(engine.core, board, replace(sockets, compiles=engine.grammars.pool), clock, log)
        code = loop.run(parent)
    finally:
        engine.close()
    log.write("info", "engine stopped", exit_code=int(code))
    return code


def open_listener(path: Path) -> socket.socket:
    """Returns a listening socket at `path`, which only this user can reach. Raises FolderError.

    The folder must be this user's alone. A socket left behind there by an engine that was killed is replaced.
    """
    try:
        folder = path.parent.stat()
    except OSError as error:
        raise FolderError(f"runtime folder {path.parent}: {error.strerror}") from error
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise FolderError(f"runtime folder {path.parent} must belong to this user alone (mode 0700)")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old_mask = os.umask(0o177)
    try:
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
            path.unlink()
        listener.bind(os.fspath(path))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise FolderError(f"socket {path}: {error.strerror or error}") from error
    finally:
        os.umask(old_mask)
    return listener


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tidegate.engine_process", description="One inference engine on a socket.")
    parser.add_argument(
        "--socket", required=True, help="path of the Unix socket to listen on, in a folder of mode 0700"
    )
    parser.add_argument("--epoch", type=int, required=True, help="number of this start; goes up with every restart")
    parser.add_argument("--backend", required=True, choices=("llama", "scripted", "simulated"))
    parser.add_argument("--options", default="{}", help="JSON: the fields of EngineOptions but `backend`")
    parser.add_argument("--parent-id", type=int, default=None, help="process to end with; default: whoever started us")
    return parser.parse_args(arguments)


def _catch_signals() -> socket.socket:
    """Returns a socket on which every caught signal puts a byte."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _quit_while_starting)
    read_end, write_end = socket.socketpair()
    read_end.setblocking(False)
    write_end.setblocking(False)
    signal.set_wakeup_fd(write_end.detach(), warn_on_full_buffer=False)
    return read_end


def _quit_while_starting(_number: int, _frame: FrameType | None) -> None:
    sys.exit(EngineExit.CLEAN)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
