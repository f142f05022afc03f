"""The fixed bytes of a stream's chunks, joined once: a token costs one JSON string and one join.

A chunk is `data: ` + `{"id":…,"choices":[` + one choice + `]` + usage + `}` + two line feeds. Id, time and model are
the same in every chunk of a stream, so everything around the choice is made when the stream opens. A test holds these
bytes against the encoded structs of `contract`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.contract.codec import encode_json
from tidegate.serving.usage import TokenCounts

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class ReplyIdentity:
    """What every chunk of a reply, or its whole body, says of itself. `created` is in seconds since the epoch."""

    reply_id: str
    created: int
    model: str
    fingerprint: str


class ChunkHead:
    """Frames chunks of one stream. `counts` is read whenever a chunk has to carry usage."""

    def __init__(
        self,
        identity: ReplyIdentity,
        object_name: str,
        counts: Callable[[], TokenCounts],
        *,
        include_usage: bool,
        continuous_usage: bool = False,
    ) -> None:
        members = {
            "id": identity.reply_id,
            "object": object_name,
            "created": identity.created,
            "model": identity.model,
            "system_fingerprint": identity.fingerprint,
        }
        self._start = b"data: " + encode_json(members)[:-1] + b',"choices":['
        self._counts = counts
        self._include_usage = include_usage
        self._continuous_usage = continuous_usage
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"

    def frame(self, choice: bytes, extra: bytes = b"") -> bytes:
        """Returns one event; `choice` is the JSON of one choice, `extra` further members, each with a leading comma."""
        end = self._usage_end() if self._continuous_usage else self._end
        return b"".join((self._start, choice, b"]", extra, end))

    def close(self) -> bytes:
        """Returns the usage chunk, when it was asked for, and the end marker."""
        if not self._include_usage:
            return DONE
        return b"".join((self._start, b"]", self._usage_end(), DONE))

    def _usage_end(self) -> bytes:
        return b',"usage":' + encode_json(self._counts().to_wire()) + b"}\n\n"
