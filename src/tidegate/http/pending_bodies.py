"""PendingBodies: the bytes of all bodies that one application holds, bounded before anything is allocated.

Decides whether a body may take more room. A large body may take the room only up to a share, so that a few large
uploads, however slowly they come, do not keep small ones out. One body alone always enters: being full is temporary.
It does not read, and does not know times.
"""

from tidegate.errors import LimitFact, NoCapacity

SMALL_BODY_BYTES = 64 * 1024
_LARGE_SHARE = (7, 8)


class PendingBodies:
    """Belongs to one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0

    def reserve(self, held: int, more: int) -> None:
        """Takes `more` bytes for a body that holds `held` already. Raises NoCapacity, and then takes nothing."""
        wanted = held + more
        room = self.max_bytes
        if wanted > SMALL_BODY_BYTES:
            room = room * _LARGE_SHARE[0] // _LARGE_SHARE[1]
        if self.num_bytes + more > room and self.num_bytes > held:
            limit = LimitFact("pending_body_bytes", self.max_bytes, self.num_bytes + more, scope="server")
            raise NoCapacity("The server is reading as many bodies as it can.", retry_after_s=1, limit=limit)
        self.num_bytes += more

    def release(self, held: int) -> None:
        """Gives back what a body held."""
        self.num_bytes -= held
