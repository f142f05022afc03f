"""Stands up another server of the same API with the same small model, to judge it or to measure against it.

    python bench/peers/run.py NAME [--port P] [--build DIR]           serve until SIGINT or SIGTERM
    python bench/peers/run.py NAME -- COMMAND ...                     serve while COMMAND runs; its exit status is ours
    python bench/peers/run.py --list                                  the peers

The first run makes an environment for the peer and takes minutes. The address goes to standard output when the server
is ready, all else to standard error. In COMMAND, {url} and {model} stand for the address and the served name.
docs/peers.md tells more.
"""

import argparse
import signal
import subprocess
import sys
import threading
from itertools import takewhile
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from catalog import PEERS, Peer, Start, peer_named
from environment import PeerTroubleError, alone, installed_version, make_environment, say

from bundled_model import bundled_model
from serving import free_port, serving

BUILD = Path(__file__).resolve().parents[2] / "build" / "peers"
LOOK_EVERY_S = 0.2


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage="%(prog)s NAME [options] [-- COMMAND ...]")
    parser.add_argument("name", nargs="?", help="which peer; --list shows them")
    parser.add_argument("--port", type=int, help="default: a free one")
    parser.add_argument("--build", type=Path, default=BUILD, metavar="DIR", help="default: build/peers")
    parser.add_argument("--model", metavar="FILE.gguf", help="default: the bundled model")
    parser.add_argument("--threads", type=int, default=1, help="default: 1, which no other process can hold up")
    parser.add_argument("--api-key", default="", metavar="KEY", help="the server asks for it; default: for none")
    parser.add_argument("--setup-only", action="store_true", help="make the environment and end")
    parser.add_argument("--list", action="store_true", help="name the peers and end")
    ours = list(takewhile(lambda part: part != "--", sys.argv[1:]))
    arguments = parser.parse_args(ours)
    arguments.command = sys.argv[len(ours) + 2 :]
    return arguments


def main() -> int:
    arguments = read_arguments()
    if arguments.list or arguments.name is None:
        sys.stdout.write("".join(f"{peer.name:18}{peer.what}\n" for peer in PEERS))
        return 0 if arguments.list else 2
    peer = peer_named(arguments.name)
    try:
        return run(peer, arguments)
    except PeerTroubleError as trouble:
        sys.stderr.write(f"{trouble}\n")
        return 2


def run(peer: Peer, arguments: argparse.Namespace) -> int:
    """Makes and serves a peer. Raises PeerTroubleError when that fails or the server ends by itself."""
    if arguments.api_key and not peer.takes_key:
        raise PeerTroubleError(f"{peer.name} cannot be told to ask for a key")
    folder = (arguments.build / peer.name).resolve()
    gguf = Path(arguments.model or bundled_model()).resolve()
    with alone(folder):
        start = Start(
            folder=folder,
            gguf=gguf,
            port=free_port(arguments.port),
            num_threads=arguments.threads,
            api_key=arguments.api_key,
        )
        make_environment(peer, start)
        say(f"{peer.package} {installed_version(peer, start)}: {peer.what}")
        if arguments.setup_only:
            return 0
        is_told_to_end = threading.Event()

        def tell(_signal: int, _frame: FrameType | None) -> None:
            is_told_to_end.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, tell)
        with serving(peer, start, is_told_to_end) as server:
            if is_told_to_end.is_set():
                return 0
            url = f"http://127.0.0.1:{start.port}/v1"
            sys.stdout.write(f"{url}\n")
            sys.stdout.flush()
            command = [part.replace("{url}", url).replace("{model}", peer.model) for part in arguments.command]
            status = follow(command, is_told_to_end) if command else idle(server, is_told_to_end)
            if server.poll() is not None:
                raise PeerTroubleError(f"{peer.name} ended by itself with {server.returncode}: see {folder}/server.log")
            return status


def idle(server: "subprocess.Popen[bytes]", is_told_to_end: threading.Event) -> int:
    while not is_told_to_end.wait(LOOK_EVERY_S) and server.poll() is None:
        pass
    return 0


def follow(command: list[str], is_told_to_end: threading.Event) -> int:
    """Runs a command to its end, or until we are told to end; returns its exit status.

    That the server dies meanwhile is for the command to notice: it may be what it is looking for.
    """
    with subprocess.Popen(command) as running:
        while running.poll() is None:
            if is_told_to_end.wait(LOOK_EVERY_S):
                running.terminate()
                break
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
