"""What a worker process is told: on its command line, and of the engines whenever they change. JSON."""

from typing import Literal

import msgspec

from tidegate.cli.settings import Settings

Wish = Literal["in", "draining", "retiring"]


class EngineTie(msgspec.Struct, frozen=True):
    """One engine, as a worker reaches it: over a socket of this machine, or, without one, by itself.

    `model` is the first name of what it serves. `url` is where it is, if the settings do not say. `actor` is its name
    on Ray. `wish` is what whoever runs the server wants of it.
    """

    name: str
    model: str
    socket: str | None = None
    url: str | None = None
    wish: Wish = "in"
    actor: str | None = None


class WorkerSpec(msgspec.Struct, frozen=True):
    """`settings` are those of the server. Sockets are paths: of this worker's control, of the gate."""

    settings: Settings
    listener_fd: int
    engines: tuple[EngineTie, ...]
    control_socket: str
    gate_socket: str
