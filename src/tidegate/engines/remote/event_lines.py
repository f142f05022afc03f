"""EventLines: the bytes of an event stream to the data of its events, however they are cut.

Decides where an event's data begins and ends. Comments and fields other than `data` are skipped. Does not know what
the data means, nor sockets. Memory: one event, bounded.
"""

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""One event: the largest is the first of a long prompt whose tokens are all scored."""

_DATA = b"data:"


class UnreadableAnswer(Exception):
    """The engine sent what is not its protocol; the message says what, for the log."""


class EventLines:
    """`feed` with bytes as they come; `finish` at the end of the body."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._num_data_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the data of the events that are complete now. Raises UnreadableAnswer for one that is too long."""
        self._rest += data
        if len(self._rest) + self._num_data_bytes > MAX_EVENT_BYTES + len(data):
            raise UnreadableAnswer(f"an event of more than {MAX_EVENT_BYTES} bytes")
        end = self._rest.rfind(b"\n")
        if end < 0:
            return []
        lines = bytes(self._rest[:end]).split(b"\n")
        del self._rest[: end + 1]
        events = []
        for line in lines:
            text = line.removesuffix(b"\r")
            if text:
                self._take_line(text)
            elif self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
                self._num_data_bytes = 0
        return events

    def finish(self) -> None:
        """Raises UnreadableAnswer when the stream ended inside an event."""
        if self._rest or self._data:
            raise UnreadableAnswer("the stream ended inside an event")

    def _take_line(self, line: bytes) -> None:
        if not line.startswith(_DATA):
            if b":" not in line:
                raise UnreadableAnswer(f"a line that is no field: {line[:60]!r}")
            return
        value = line[len(_DATA) :].removeprefix(b" ")
        self._data.append(value)
        self._num_data_bytes += len(value)
