"""The fault matrix as data: in which phase a request is, how it is asked for, and what its client has read."""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

from harness.event_stream import Stream, read_stream
from harness.raw_http import Answer, RawClient
from harness.server_view import engine_state, live_requests
from tidegate.lifecycle.engine_load import look_ahead

LONG_S = 30.0
"""A pause that no test waits out."""
PIECES = ("a", "b", "c")
MAX_TOKENS = 1000
"""What a request of the matrix may generate: more than any of its scripts, and cheap for admission."""


class Phase(Enum):
    """Where a request is when the fault comes."""

    GATE = "gate"
    """Queued in the server: the engine has not heard of it."""
    QUEUED = "queued"
    """Queued in the engine."""
    PREFILL = "prefill"
    DECODE = "decode"
    LAST = "last"
    """All but the last token are out; the finish would come with it."""


NUM_TOKENS = {Phase.GATE: 0, Phase.QUEUED: 0, Phase.PREFILL: 0, Phase.DECODE: 1, Phase.LAST: 2}
"""How many tokens each choice of a request has while it rests in a phase."""
ENGINE_PHASES = tuple(phase for phase in Phase if phase is not Phase.GATE)


class Route(Enum):
    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"


@dataclass(frozen=True, slots=True)
class Cell:
    """One request of the matrix. Each of its prompts has `n` choices; all choices have the same text."""

    phase: Phase
    route: Route
    is_stream: bool
    num_prompts: int = 1
    n: int = 1

    @property
    def name(self) -> str:
        shape = self.route.name.lower() if self.num_choices == 1 else f"{self.route.name.lower()}x{self.num_choices}"
        return f"{self.phase.value}-{shape}-{'stream' if self.is_stream else 'whole'}"

    @property
    def num_choices(self) -> int:
        return self.num_prompts * self.n

    @property
    def num_tokens_before(self) -> int:
        """Tokens of all choices while the request rests."""
        return NUM_TOKENS[self.phase] * self.num_choices

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens of one choice. The first one names the cell: no other answer may hold it."""
        return (f"<{self.name}>", *PIECES[1:])

    @property
    def text(self) -> str:
        """The whole text of each choice."""
        return "".join(self.pieces)

    @property
    def text_before(self) -> str:
        """What a stream's reader has read of each choice by then."""
        return "".join(self.pieces[: NUM_TOKENS[self.phase]]) if self.is_stream else ""

    def body(self, pause_s: float = LONG_S, **more_script: Any) -> dict[str, Any]:
        """Asks for the whole text, with one pause in the cell's phase."""
        fields: dict[str, Any] = {"stream": self.is_stream, "n": self.n, "max_tokens": MAX_TOKENS}
        if self.num_prompts > 1:
            fields["prompt"] = ["hi"] * self.num_prompts
        return ask(self.route, script(self.phase, pause_s, self.pieces) | more_script, **fields)


ONE, BATCH = (1, 1), (2, 2)
"""How many prompts a request has, and how many choices each of them."""


def cells_of(phases: tuple[Phase, ...], *shapes: tuple[Route, tuple[int, int]]) -> tuple[Cell, ...]:
    """Every request of these phases and shapes, streamed and whole."""
    return tuple(
        Cell(phase, route, is_stream, num_prompts, n)
        for phase, (route, (num_prompts, n)), is_stream in product(phases, shapes, (True, False))
    )


SHAPES = ((Route.CHAT, ONE), (Route.COMPLETIONS, ONE), (Route.COMPLETIONS, BATCH))
CELLS = cells_of(ENGINE_PHASES, *SHAPES[:2])
"""Those of one choice."""
ENGINE_CELLS = cells_of(ENGINE_PHASES, *SHAPES)
GATE_CELLS = cells_of((Phase.GATE,), *SHAPES)
MATRIX_CELLS = (*GATE_CELLS, *ENGINE_CELLS)
NUM_IN_ENGINE = sum(cell.num_choices for cell in ENGINE_CELLS)


def _num_rows() -> int:
    """A server gives its engine some sequences more than it has rows, so that a row never stands empty."""
    return next(rows for rows in range(1, NUM_IN_ENGINE + 1) if rows + look_ahead(rows) == NUM_IN_ENGINE)


NUM_ROWS = _num_rows()
"""Sequences of a server in which all of ENGINE_CELLS are in the engine and all of GATE_CELLS wait before it."""


def ask(route: Route, x_script: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A request's body. The model is the scripted one."""
    prompt = {"messages": [{"role": "user", "content": "hi"}]} if route is Route.CHAT else {"prompt": "hi"}
    script_member = {} if x_script is None else {"x_script": x_script}
    return {"model": "scripted", "max_tokens": 100_000, **prompt, **script_member, **fields}


def hex_pieces(*texts: str) -> list[str]:
    return [text.encode().hex() for text in texts]


def script(phase: Phase, pause_s: float, texts: tuple[str, ...] = PIECES) -> dict[str, Any]:
    """Three tokens, and one pause."""
    pieces = {"pieces": hex_pieces(*texts), "finish": "eos"}
    match phase:
        case Phase.GATE:
            return pieces
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
        self,
        port: int,
        cell: Cell,
        *,
        pause_s: float = LONG_S,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        self.cell = cell
        self.client = RawClient(port, receive_buffer_bytes=receive_buffer_bytes)
        self.answer: Answer | None = None
        sent = cell.body(pause_s) if body is None else body
        self.client.post(cell.route.value, sent, {"X-Request-Id": cell.name, **(headers or {})})

    def read_before(self) -> str:
        """Reads a stream's text up to the pause; returns it. Nothing for a whole reply, or before the status."""
        if not self.cell.text_before:
            return ""
        self.answer = self.client.read_head()
        while set(self.texts()) != {self.cell.text_before}:
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

    def texts(self) -> list[str]:
        """What each choice of a stream has brought so far."""
        stream = self.stream()
        read = stream.content if self.cell.route is Route.CHAT else stream.text
        return [read(index) for index in range(self.cell.num_choices)]

    def text(self) -> str:
        """The same of the first choice."""
        return self.texts()[0]


def are_resting(admin_port: int, cells: tuple[Cell, ...]) -> bool:
    """Whether every one of these requests, and nothing else, is in its phase."""
    live, gauges = live_requests(admin_port), engine_state(admin_port)["gauges"]
    works = {cell.name: "received" if cell.phase is Phase.GATE else "running" for cell in cells}
    if {name: request["work"] for name, request in live.items()} != works:
        return False
    in_engine = [cell for cell in cells if cell.phase is not Phase.GATE]
    # Choices of a prompt that is being read wait for it.
    num_waiting = sum(cell.num_choices for cell in in_engine if cell.phase is Phase.QUEUED)
    num_waiting += sum(cell.num_choices - cell.num_prompts for cell in in_engine if cell.phase is Phase.PREFILL)
    num_running = sum(cell.num_choices for cell in in_engine) - num_waiting
    if (gauges["num_waiting"], gauges["num_running"]) != (num_waiting, num_running):
        return False
    return all(live[cell.name]["completion_tokens"] == cell.num_tokens_before for cell in cells)
