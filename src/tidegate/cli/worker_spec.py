"""What a worker process is told on its command line, as JSON."""

import msgspec

from tidegate.cli.settings import Settings


class WorkerSpec(msgspec.Struct, frozen=True):
    """`settings` are those of the server. Sockets are paths: of the engine, of this worker's control, of the gate."""

    settings: Settings
    listener_fd: int
    engine_socket: str
    control_socket: str
    gate_socket: str
