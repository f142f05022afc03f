"""Ask: one HTTP request of a case, as data: what is sent, how it is sent, and how the answer is read.

Strings of a body, path or header may hold `{model}`, `{marker}` (a word that no other ask of the run holds, made from
the run's seed) and `{copy}` (0 for the first copy); the value `"{seed}"` becomes a number made from the run's seed. A
value that depends on an earlier answer is a `Derived`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Place(Enum):
    """What the path of an ask begins below."""

    API = "the base URL, which ends in /v1"
    ROOT = "the server's root"
    ADMIN = "the admin URL"
    METRICS = "the admin URL where one is known, else the server's root"


class Leaving(Enum):
    """When a client goes away on purpose, without having read everything."""

    AFTER_REQUEST = "as soon as the request is sent"
    HALF_REQUEST = "when half of the body is sent"
    AFTER_HEAD = "when status and headers are read"
    AFTER_EVENTS = "when `events` events are read"
    AFTER_PAUSE = "`leave_after_s` seconds after the request is sent, whatever has come"
    AFTER_OTHERS = "when the other asks of its waves are answered, or after `leave_after_s` seconds"


@dataclass(frozen=True, slots=True)
class Derived:
    """A value made from earlier exchanges. `make` is a named function of them; it may raise CannotTell.

    Placeholders are filled in `args`, not in what is made: that may hold what a model said.
    """

    make: Callable[..., Any]
    of: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a request is sent and its answer read. Times in seconds.

    `send_bytes`: at most so many bytes in a write, `send_pause_s` between two. `leaving`, `leave_after_s`: see there;
    `with_reset`: the connection is reset, not closed. `pause_after_events`: then nothing is read for `pause_s`.
    `read_bytes`: at most so many bytes in a read, `read_pause_s` between two. `receive_buffer_bytes`: of the socket.
    `timeout_s`: from connecting to the end; None: the run's own.
    """

    send_bytes: int | None = None
    send_pause_s: float = 0.0
    leaving: Leaving | None = None
    events: int = 1
    leave_after_s: float = 1.0
    with_reset: bool = False
    pause_after_events: int | None = None
    pause_s: float = 0.0
    read_bytes: int | None = None
    read_pause_s: float = 0.0
    receive_buffer_bytes: int | None = None
    timeout_s: float | None = None


PLAIN = Manner()


POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Until:
    """Ask again, every `every_s`, until `check` finds nothing wrong; once more when `within_s` seconds are over,
    and then no more. Only the last exchange is kept. `of`: exchanges of earlier asks that the check gets before the new
    one.
    """

    check: Callable[..., Any]
    within_s: float
    every_s: float = POLL_S
    of: tuple[str, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. Asks of one `wave` are sent at once, waves one after the other; so are `copies` of one ask.

    `body`: JSON, sent as such; `raw`: sent as it stands, but for `{model}`, instead. `headers`: besides Host,
    Content-Type, Content-Length, Authorization and User-Agent; None leaves one of those out, several values are as many
    lines; `{key}` in one stands for the caller's key. `script`: what a scripted engine is to play (`x_script`); other
    servers are not sent it.
    `is_endless`: only `max_tokens` is to end the answer: extensions that say so are sent where the server obeys them,
    unless it plays a script.
    `delay_s`: waits before it is sent, from the wave's beginning.
    `last_wave`: it goes on beside later waves up to this one; None: its own wave ends with its answer.
    `script_manner`: in place of `manner` where `script` is played: then it is known how long the work lasts.
    `is_refusable`: an honest refusal of this ask makes the case `unsupported`.
    """

    name: str = "it"
    method: str = "POST"
    path: str | Derived = "/chat/completions"
    place: Place = Place.API
    body: Any = None
    raw: bytes | Derived | None = None
    headers: Mapping[str, str | Derived | tuple[str | Derived, ...] | None] = field(default_factory=dict)
    script: Any = None
    is_endless: bool = False
    manner: Manner = PLAIN
    wave: int = 0
    copies: int = 1
    delay_s: float = 0.0
    last_wave: int | None = None
    script_manner: Manner | None = None
    until: Until | None = None
    is_refusable: bool = False

    @property
    def is_lasting(self) -> bool:
        """Whether it goes on beside asks of its own wave, or of later ones."""
        return self.last_wave is not None or self.manner.leaving is Leaving.AFTER_OTHERS
