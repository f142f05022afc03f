"""One of several server processes: `python -m tidegate.cli.worker SPEC`, started by the first one and by nobody else.

Serves the public listener on an inherited socket and shares the engine. Ends with its parent, or at SIGTERM after a
drain. What the operator sees of it goes through the parent, which asks over a Unix socket.
"""

import asyncio
import os
import sys
from pathlib import Path
from socket import socket

import msgspec
import uvloop

from tidegate.cli.access import AccessError
from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.engine_specs import model_specs
from tidegate.cli.fleet_acts import tell_engine
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import load_models
from tidegate.cli.open_ledger import check_ledger
from tidegate.cli.process_end import EXIT_FAILED, EXIT_OK, ignore_signals, on_signals
from tidegate.cli.public_server import PublicServer
from tidegate.cli.reached_fleet import ReachedFleet
from tidegate.cli.running_server import wait_first
from tidegate.cli.wiring import install_loop_reports, open_log
from tidegate.cli.worker_control import Answer, answer_questions
from tidegate.cli.worker_spec import EngineTie, WorkerSpec
from tidegate.contract.admin import EngineAct
from tidegate.contract.admin_query import RequestFilter
from tidegate.contract.codec import encode_json
from tidegate.lifecycle.ledger_port import LedgerBroken

_PATIENCE_S = 5.0
"""How long a new worker leaves connections to the others while engine and gate have not greeted it."""


def main() -> int:
    """Returns the exit code: 0 after a drain, 1 when the listener failed or the parent has gone."""
    spec = msgspec.json.decode(sys.argv[1], type=WorkerSpec)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(spec))


async def _serve(spec: WorkerSpec) -> int:
    logger = open_log(spec.settings).bind(worker=os.getpid())
    install_loop_reports()
    order = DrainOrder(spec.settings.server)
    on_signals(order.give)
    try:
        loaded = load_models(spec.settings)
        check_ledger(spec.settings)
    except (LoadError, LedgerBroken) as error:
        logger.error("worker failed", reason=str(error))
        return EXIT_FAILED
    fleet = ReachedFleet(model_specs(spec.settings), loaded, spec.engines, logger)
    try:
        server = PublicServer(
            spec.settings, fleet.sites, socket(fileno=spec.listener_fd), logger, order, Path(spec.gate_socket)
        )
    except AccessError as error:
        logger.error("worker failed", reason=str(error))
        return EXIT_FAILED
    control = await answer_questions(Path(spec.control_socket), _answers(server, fleet))
    try:
        await fleet.start()
        await server.start(patience_s=_PATIENCE_S)
        await wait_first(_wait_parent_gone(), order.wait_given(), server.http.wait_stopped())
        was_asked = order.is_given
        await server.drain()
        return EXIT_OK if was_asked else EXIT_FAILED
    finally:
        control.close()
        await server.stop()
        await fleet.aclose()
        ignore_signals()


def _answers(server: PublicServer, fleet: ReachedFleet) -> dict[str, Answer]:
    view = server.parts.admin

    def list_requests(argument: str) -> bytes:
        return encode_json(view.list_requests(msgspec.json.decode(argument, type=RequestFilter)))

    def drain(argument: str) -> bytes:
        server.begin_drain(msgspec.json.decode(argument, type=float | None))
        return b"yes"

    def act_on_engine(argument: str) -> bytes:
        name, word = msgspec.json.decode(argument, type=tuple[str, str])
        site = next(site for site in fleet.sites if name in site.engines.parts)
        return encode_json(tell_engine(site, name, EngineAct(word)))

    def settle(argument: str) -> bytes:
        fleet.settle(msgspec.json.decode(argument, type=tuple[EngineTie, ...]))
        return encode_json(view.engine_rows())

    return {
        "requests": list_requests,
        "abort": lambda request_id: (view.abort(request_id) or "").encode(),
        "drain": drain,
        "accounts": lambda _: encode_json(view.accounts()),
        "gauges": lambda _: encode_json(view.gauges()),
        "metrics": lambda _: view.expose("")[1],
        "ready": lambda _: b"yes" if server.is_ready else b"no",
        "engines": lambda _: encode_json(view.engine_rows()),
        "act_on_engine": act_on_engine,
        "settle": settle,
    }


async def _wait_parent_gone() -> None:
    """Standard input is a pipe from the parent that nobody writes to: it ends when the parent does."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    await reader.read()


if __name__ == "__main__":
    sys.exit(main())
