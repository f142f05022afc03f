"""The fault matrix as data: in which phase a request is, how it is asked for, and what its client has read."""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

from harness.event_stream import Stream, read_stream
from harness.raw_http import Answer, RawClient
from harness.server_view import engine_state, live_requests

LONG_S = 30.0
"""A pause that no test waits out."""
PIECES = ("a", "b", "c")
WHOLE_TEXT = "abc"


class Phase(Enum):
    """Where the engine is with a request when the fault comes."""

    QUEUED = "queued"
    PREFILL = "prefill"
    DECODE = "decode"
    LAST = "last"
    """All but the last token are out; the finish would come with it."""


NUM_TOKENS = {Phase.QUEUED: 0, Phase.PREFILL: 0, Phase.DECODE: 1, Phase.LAST: 2}
"""How many tokens a request has while it rests in a phase."""


class Route(Enum):
    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"


@dataclass(frozen=True, slots=True)
class Cell:
    """One request of the matrix."""

    phase: Phase
    route: Route
    is_stream: bool

    @property
    def name(self) -> str:
        return f"{self.phase.value}-{self.route.name.lower()}-{'stream' if self.is_stream else 'whole'}"

    @property
    def text_before(self) -> str:
        """What a stream's reader has read by then."""
        return WHOLE_TEXT[: NUM_TOKENS[self.phase]] if self.is_stream else ""

    def body(self, pause_s: float = LONG_S) -> dict[str, Any]:
        """Asks for the whole text, with one pause in the cell's phase."""
        return ask(self.route, script(self.phase, pause_s), stream=self.is_stream)


CELLS = tuple(Cell(*members) for members in product(Phase, Route, (True, False)))


def ask(route: Route, x_script: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A request's body. The model is the scripted one."""
    prompt = {"messages": [{"role": "user", "content": "hi"}]} if route is Route.CHAT else {"prompt": "hi"}
    script_member = {} if x_script is None else {"x_script": x_script}
    return {"model": "scripted", "max_tokens": 100_000, **prompt, **script_member, **fields}


def hex_pieces(*texts: str) -> list[str]:
    return [text.encode().hex() for text in texts]


def script(phase: Phase, pause_s: float) -> dict[str, Any]:
    """Three tokens, and one pause."""
    pieces = {"pieces": hex_pieces(*PIECES), "finish": "eos"}
    match phase:
        case Phase.QUEUED:
            return {**pieces, "queue_delay_s": pause_s}
        case Phase.PREFILL:
            return {**pieces, "prefill_delay_s": pause_s}
        case Phase.DECODE:
            return {**pieces, "delays_s": [0.0, pause_s, 0.0]}
        case Phase.LAST:
            return {**pieces, "delays_s": [0.0, 0.0, pause_s]}


class Caller:
    """One cell's client: sends, and reads what there is to read in its phase."""

    def __init__(
        self, port: int, cell: Cell, *, pause_s: float = LONG_S, headers: dict[str, str] | None = None
    ) -> None:
        self.cell = cell
        self.client = RawClient(port)
        self.answer: Answer | None = None
        self.client.post(cell.route.value, cell.body(pause_s), {"X-Request-Id": cell.name, **(headers or {})})

    def read_before(self) -> str:
        """Reads a stream's text up to the pause; returns it. Nothing for a whole reply, or before the status."""
        if not self.cell.text_before:
            return ""
        self.answer = self.client.read_head()
        while self.text() != self.cell.text_before:
            chunk = self.client.read_chunk()
            assert chunk is not None, "the stream ended early"
            self.answer.body += chunk
        return self.text()

    def read_rest(self) -> Answer:
        """Reads the answer to its end, however it ends."""
        if self.answer is None:
            self.answer = self.client.read_answer()
            return self.answer
        self.client.read_body(self.answer)
        return self.answer

    def stream(self) -> Stream:
        assert self.answer is not None
        return read_stream(self.answer.body)

    def text(self) -> str:
        stream = self.stream()
        return stream.content() if self.cell.route is Route.CHAT else stream.text()


def are_resting(admin_port: int, cells: tuple[Cell, ...]) -> bool:
    """Whether every one of these requests, and nothing else, is in its phase."""
    live, gauges = live_requests(admin_port), engine_state(admin_port)["gauges"]
    num_queued = sum(cell.phase is Phase.QUEUED for cell in cells)
    if len(live) != len(cells) or any(request["work"] != "running" for request in live.values()):
        return False
    if (gauges["num_waiting"], gauges["num_running"]) != (num_queued, len(cells) - num_queued):
        return False
    return all(live[cell.name]["completion_tokens"] == NUM_TOKENS[cell.phase] for cell in cells)
