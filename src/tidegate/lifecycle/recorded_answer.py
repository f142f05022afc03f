"""RecordedAnswer: a whole answer, and its bytes in a ledger.

What the caller saw is kept: status, body or event bytes, and the headers that say how the answer came about. Not kept:
what belongs to one exchange (request id, rate limits) and heartbeats.
"""

import zlib

import msgspec

COMPRESS_ABOVE_BYTES = 512
_LEVEL = 1


class RecordedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """`body` is a JSON body, or all event bytes of a stream with their end marker. `format` names this layout."""

    status: int
    headers: tuple[tuple[str, str], ...]
    is_stream: bool
    body: bytes
    is_compressed: bool = False
    format: int = 1


def pack(answer: RecordedAnswer) -> bytes:
    """Returns the bytes to store. Event streams shrink to about a tenth."""
    if len(answer.body) > COMPRESS_ABOVE_BYTES:
        answer = msgspec.structs.replace(answer, body=zlib.compress(answer.body, _LEVEL), is_compressed=True)
    return _ENCODER.encode(answer)


def unpack(stored: bytes) -> RecordedAnswer:
    """Returns what was packed. Raises ValueError for bytes that this version did not write."""
    try:
        answer = _DECODER.decode(stored)
        if answer.format != 1:
            raise ValueError(f"an answer of format {answer.format}")
        body = zlib.decompress(answer.body) if answer.is_compressed else answer.body
    except (msgspec.MsgspecError, zlib.error) as error:
        raise ValueError(f"not a recorded answer: {error}") from None
    return msgspec.structs.replace(answer, body=body, is_compressed=False)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(RecordedAnswer)
