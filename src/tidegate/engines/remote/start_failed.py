"""RemoteStartFailed: an engine on another machine that cannot be served."""


class RemoteStartFailed(Exception):
    """The engine answers, but cannot be served; the message says why."""
