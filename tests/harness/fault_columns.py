"""One column of the fault matrix: requests in every phase, one fault that hits all of them, and what became of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.accounting import check_accounts
from harness.faults import ENGINE_CELLS, GATE_CELLS, LONG_S, Caller, Cell, are_resting, ask
from harness.raw_http import Answer, request
from harness.server_thread import Baseline, ServerThread, wait_until
from harness.server_view import Metrics, ended_requests, live_requests, read_metrics

MakeCaller = Callable[[int, Cell], Caller]


@dataclass(slots=True)
class Column:
    """What is known of each request, by its cell."""

    callers: dict[Cell, Caller] = field(default_factory=dict)
    answers: dict[Cell, Answer] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, port: int, admin_port: int, *, pause_s: float = LONG_S, make: MakeCaller | None = None) -> None:
        """Brings a request of every cell into its phase: first those that fill the engine, then those that wait."""
        for cells in (ENGINE_CELLS, GATE_CELLS):
            for cell in cells:
                self.callers[cell] = make(port, cell) if make else Caller(port, cell, pause_s=pause_s)
            for cell in cells:
                self.callers[cell].read_before()
            so_far = tuple(self.callers)
            wait_until(lambda so_far=so_far: are_resting(admin_port, so_far), "every request rests in its phase")  # type: ignore[misc]

    def finish(self) -> None:
        """Reads every answer to its end."""
        for cell, caller in self.callers.items():
            self.answers[cell] = caller.read_rest()
            caller.client.close()

    def hang_up(self) -> None:
        """Closes every connection: a column that went wrong leaves none behind."""
        for caller in self.callers.values():
            caller.client.close()

    @property
    def num_tokens_before(self) -> int:
        """Tokens that the engine had generated when the fault came."""
        return sum(cell.num_tokens_before for cell in self.callers)


@dataclass(slots=True)
class ServerColumn(Column):
    """A column on a server whose insides can be seen: everything must come back to where it was."""

    before: Baseline | None = None
    counted: Metrics | None = None
    now: Metrics | None = None

    def open(self, server: ServerThread) -> None:
        """Notes the accounts before the first request."""
        self.before, self.counted = server.rest(), read_metrics(server.admin_port)
        server.take_log()

    def close(self, server: ServerThread, *, is_exact: bool = True) -> None:
        """Waits until every account is back, checks the identity, and takes the log."""
        assert self.before is not None
        assert self.counted is not None
        server.wait_ready()
        server.wait_back(self.before)
        assert live_requests(server.admin_port) == {}
        self.now = read_metrics(server.admin_port)
        self.ended = ended_requests(server.take_log())
        check_accounts(self.counted, self.now, is_exact=is_exact)

    def since(self, name: str, **labels: str) -> float:
        """How much a metric has grown over the column."""
        assert self.counted is not None
        assert self.now is not None
        return self.now.since(self.counted, name, **labels)


def check_failed(
    cell: Cell, column: Column, *, status: int, codes: tuple[str, ...], kind: str, is_retry_safe: bool
) -> str:
    """The end of a request that failed: a status where nothing had been sent, else an event and a cut.

    Returns the code, which is one of `codes`. `is_retry_safe`: what is advised where nothing had been sent.
    """
    answer, caller = column.answers[cell], column.callers[cell]
    if answer.headers["content-type"] == "application/json":
        assert not cell.text_before
        assert (answer.status, answer.is_complete) == (status, True)
        assert answer.headers["x-should-retry"] == ("true" if is_retry_safe else "false")
        error = answer.json()["error"]
    else:
        stream = caller.stream()
        assert answer.status == 200
        assert stream.findings == []
        assert len(stream.errors) == 1
        assert "error" in stream.chunks[-1], "the error is the last event"
        assert stream.num_done == 0
        assert [stream.finish_reasons(index) for index in range(cell.num_choices)] == [[]] * cell.num_choices
        assert not answer.is_complete, "the connection is cut, so that nobody takes the stream for complete"
        assert all(cell.text_before.startswith(text) for text in caller.texts())
        error = stream.errors[0]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["code"] in codes
    assert error["type"] == kind
    assert answer.headers["x-request-id"] == cell.name
    return str(error["code"])


def check_whole(cell: Cell, column: Column) -> None:
    """The end of a request that was allowed to finish: its own text, all of it, in every choice."""
    answer = column.answers[cell]
    assert (answer.status, answer.is_complete) == (200, True)
    assert answer.headers["x-request-id"] == cell.name
    if cell.is_stream:
        stream = column.callers[cell].stream()
        assert (stream.findings, stream.errors) == ([], [])
        assert [stream.finish_reasons(index) for index in range(cell.num_choices)] == [["stop"]] * cell.num_choices
        assert (stream.num_done, stream.is_done_last) == (1, True)
        assert column.callers[cell].texts() == [cell.text] * cell.num_choices
    else:
        choices = answer.json()["choices"]
        assert [choice["finish_reason"] for choice in choices] == ["stop"] * cell.num_choices
        texts = [choice["message"]["content"] if "message" in choice else choice["text"] for choice in choices]
        assert texts == [cell.text] * cell.num_choices


def warm_up(server: ServerThread) -> None:
    """One request of each kind, so that what is made once has been made."""
    for cell in ENGINE_CELLS[:6]:
        assert request(server.port, "POST", cell.route.value, cell.body(0.0)).status == 200
    assert request(server.port, "POST", "/v1/chat/completions", ask(ENGINE_CELLS[0].route)).status == 200
