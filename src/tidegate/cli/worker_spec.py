"""What a worker process is told on its command line, as JSON."""

import msgspec

from tidegate.cli.settings import Settings


class WorkerSpec(msgspec.Struct, frozen=True):
    """`settings` are those of the server. Sockets are paths: of the engine, of this worker's control, of the gate.

    `engine_socket` is None for an engine on another machine: each worker finds it by itself.
    """

    settings: Settings
    listener_fd: int
    engine_socket: str | None
    control_socket: str
    gate_socket: str
