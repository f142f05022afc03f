"""What the end of a server may take beyond the time of running requests, by the constants of whoever takes it."""

from tidegate.cli import public_service
from tidegate.engines.local.supervisor import SupervisorSettings
from tidegate.http import server as http_server
from tidegate.http.settings import ServerSettings

NUM_LISTENERS = 2


def longest_end_s() -> float:
    """Last words of streams, then both listeners one after the other, then the engine until it is killed."""
    listener_s = ServerSettings().stop_grace_s + 2 * http_server._ABORT_WAIT_S
    return public_service.LAST_WORDS_S + NUM_LISTENERS * listener_s + SupervisorSettings().stop_grace_s
