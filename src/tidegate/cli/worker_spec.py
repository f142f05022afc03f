"""What a worker process is told on its command line, as JSON."""

import msgspec

from tidegate.cli.settings import Settings


class WorkerSpec(msgspec.Struct, frozen=True):
    """`settings` are those of the server. Sockets are paths: of the engines by their names, of this worker's control,
    of the gate. An engine on another machine has none: each worker finds it by itself.
    """

    settings: Settings
    listener_fd: int
    engine_sockets: dict[str, str]
    control_socket: str
    gate_socket: str
