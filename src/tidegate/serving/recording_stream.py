"""RecordingStream: a stream whose event bytes are recorded before the caller gets the last of them."""

from tidegate.lifecycle.recorded_answer import RecordedAnswer
from tidegate.serving.answer_recorder import MAX_RECORDING_BYTES, OpenClaim
from tidegate.serving.reply import Headers, StreamReply

DONE = b"data: [DONE]\n\n"
"""What ends a stream that ended well, and nothing else: the data of every other event is a JSON object on one line."""


class RecordingStream:
    """Implements `StreamReply` around another one. Heartbeats are not the stream's, so they are not in the record."""

    def __init__(self, inner: StreamReply, claim: OpenClaim, kept_headers: tuple[tuple[str, str], ...]) -> None:
        self._inner = inner
        self._claim = claim
        self._recorder = claim.recorder
        self._kept_headers = kept_headers
        self._pieces: list[bytes] = []
        self._num_bytes = 0
        self._is_too_large = False
        self._last: bytes | None = None
        self._failure: Exception | None = None

    @property
    def headers(self) -> Headers:
        return self._inner.headers

    async def take(self) -> bytes | None:
        """See `StreamReply.take`. Also raises IdempotencyKeyInUse, instead of the last bytes."""
        if self._last is not None:
            return await self._end_well(self._last)
        if self._failure is None:
            try:
                data = await self._inner.take()
            except Exception as failure:
                self._failure = failure
            else:
                if data:
                    self._keep(data)
                    if data.endswith(DONE):
                        self._last = data
                        return await self._end_well(data)
                return data
        await self._claim.release()
        raise self._failure

    def nudge(self) -> None:
        self._inner.nudge()

    def close(self, cause: str) -> None:
        self._inner.close(cause)
        self._forget()
        self._claim.release_soon()

    async def _end_well(self, last: bytes) -> bytes:
        if self._is_too_large:
            await self._claim.release("too_large")
        else:
            body = b"".join(self._pieces)
            await self._claim.record(RecordedAnswer(200, self._kept_headers, is_stream=True, body=body))
        self._last = None
        self._forget()
        return last

    def _keep(self, data: bytes) -> None:
        if self._is_too_large:
            return
        self._pieces.append(data)
        self._num_bytes += len(data)
        recorder = self._recorder
        recorder.num_recording_bytes += len(data)
        if self._num_bytes > recorder.max_answer_bytes or recorder.num_recording_bytes > MAX_RECORDING_BYTES:
            self._is_too_large = True
            self._forget()

    def _forget(self) -> None:
        self._recorder.num_recording_bytes -= self._num_bytes
        self._num_bytes = 0
        self._pieces = []
