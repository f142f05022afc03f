"""GenerationFence: which outputs may still be delivered.

Decides, for one output, whether its request is open under the epoch that produced it. Everything else is stale:
outputs after the request's end, outputs of an engine process that is gone, ids never opened. Stale outputs are
counted here and dropped by the caller (CONTRACT.md section 5, "Fence").

Rules: a request is opened under the current epoch only; a new connection to an engine, and the loss of one, ends
everything open; an epoch never goes back.

Does not know: messages, sinks, why a connection was lost, which choice of a request an output belongs to.
"""

from dataclasses import dataclass

from tidegate.errors import InternalError


@dataclass(frozen=True, slots=True)
class FenceStatistics:
    """`epoch` is None while no engine is connected. `num_stale` runs since the start of the server process."""

    epoch: int | None
    num_open: int
    num_stale: int


class GenerationFence:
    """Holds one entry for each open request. All operations but `advance` take constant time."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._epoch: int | None = None
        self._newest: int | None = None
        self._num_stale = 0

    @property
    def epoch(self) -> int | None:
        """The epoch that requests are opened under; None while no engine is connected."""
        return self._epoch

    @property
    def num_stale(self) -> int:
        """How many outputs were not admitted."""
        return self._num_stale

    def open(self, request_id: str, epoch: int) -> None:
        """Lets outputs of this request through, if they come from `epoch`.

        Raises InternalError when `epoch` is not the current one or the id is open already.
        """
        if epoch != self._epoch:
            raise InternalError(f"request {request_id} opened under epoch {epoch}, current is {self._epoch}")
        if request_id in self._open:
            raise InternalError(f"request {request_id} opened twice")
        self._open[request_id] = epoch

    def admits(self, request_id: str, epoch: int) -> bool:
        """Says whether an output may be delivered; counts it as stale when not."""
        if self._open.get(request_id) == epoch:
            return True
        self._num_stale += 1
        return False

    def close(self, request_id: str) -> bool:
        """Ends a request: later outputs of it are stale. Idempotent; says whether it was open."""
        return self._open.pop(request_id, None) is not None

    def advance(self, epoch: int | None) -> list[str]:
        """Begins a connection under `epoch`, or marks the engine as gone (None).

        Returns the ids that were open, in order of opening: they are lost, closed, and to be failed by the caller.
        A second connection under the same epoch loses them too: an engine gives up what a vanished connection asked
        for. Raises InternalError, changing nothing, when `epoch` is older than one seen before.
        """
        if epoch is not None:
            if self._newest is not None and epoch < self._newest:
                raise InternalError(f"epoch went back from {self._newest} to {epoch}")
            self._newest = epoch
        self._epoch = epoch
        lost = list(self._open)
        self._open.clear()
        return lost

    def statistics(self) -> FenceStatistics:
        """Returns a snapshot."""
        return FenceStatistics(self._epoch, len(self._open), self._num_stale)
