"""An operator at work: aborts, flush, restart, drain, over the admin listener of whole servers."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import CELLS, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, live_requests, read_metrics, read_ready

pytestmark = pytest.mark.process

STREAM = Cell(Phase.DECODE, Route.CHAT, is_stream=True)


def act(admin_port: int, path: str, body: dict[str, Any] | None = None) -> Answer:
    return request(admin_port, "POST", "/admin/v1/" + path, body)


def audit_lines(lines: list[str]) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in lines if line.startswith("{")]
    return [record for record in records if record["event"] == "admin act"]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


def test_every_kind_of_request_can_be_aborted_by_its_id(server: ServerThread) -> None:  # DL-4
    before, counted = server.rest(), read_metrics(server.admin_port)
    server.take_log()
    callers = [Caller(server.port, cell) for cell in CELLS]
    for caller in callers:
        caller.read_before()
    wait_until(lambda: are_resting(server.admin_port, CELLS), "every request rests in its phase")
    ids = {name: live["id"] for name, live in live_requests(server.admin_port).items()}
    assert act(server.admin_port, "requests/nobody/abort").status == 404
    assert act(server.admin_port, f"requests/{callers[0].cell.name}/abort").status == 404, "no caller's own id"
    for caller in callers:
        answer = act(server.admin_port, f"requests/{ids[caller.cell.name]}/abort")
        assert (answer.status, answer.json()) == (200, {"id": ids[caller.cell.name], "status": "aborted"})
        ended = caller.read_rest()
        if caller.cell.text_before:
            stream = caller.stream()
            assert ([error["code"] for error in stream.errors], stream.num_done) == (["deadline_exceeded"], 0)
            assert not ended.is_complete
        else:
            assert (ended.status, ended.json()["error"]["code"]) == (504, "deadline_exceeded")
            assert ended.headers["x-should-retry"] == "false"
        caller.client.close()
    server.wait_back(before)
    assert act(server.admin_port, f"requests/{ids[CELLS[0].name]}/abort").status == 404, "it has ended"
    assert read_metrics(server.admin_port).since(counted, "aborts_total", cause="operator") == len(CELLS)
    audit = audit_lines(server.take_log().splitlines())
    assert [record["status"] for record in audit].count(200) == len(CELLS)
    assert [record["outcome"] for record in audit].count("route_not_found") == 3
    assert {record["action"] for record in audit} == {"/admin/v1/requests/{id}/abort"}
    assert all(record["peer"].startswith("127.0.0.1:") and record["credential"] for record in audit)


def test_an_abort_touches_no_other_request(server: ServerThread) -> None:  # DL-4
    cells = (STREAM, Cell(Phase.LAST, Route.CHAT, is_stream=True))
    one, other = (Caller(server.port, cell, pause_s=2.0) for cell in cells)
    one.read_before()
    other.read_before()
    live = live_requests(server.admin_port)
    assert act(server.admin_port, f"requests/{live[one.cell.name]['id']}/abort").status == 200
    one.read_rest()
    answer = other.read_rest()
    assert (answer.is_complete, other.text(), other.stream().finish_reasons()) == (True, other.cell.text, ["stop"])
    one.client.close()
    other.client.close()


def test_the_list_is_bounded_and_filtered(server: ServerThread) -> None:  # OVL-8
    callers = [Caller(server.port, cell) for cell in CELLS]
    wait_until(lambda: len(live_requests(server.admin_port)) == len(CELLS), "all are live")

    def listed(query: str) -> dict[str, Any]:
        found: dict[str, Any] = request(server.admin_port, "GET", "/admin/v1/requests?" + query).json()
        return found

    some = listed("limit=3")
    assert (len(some["data"]), some["total"]) == (3, len(CELLS))
    chats = listed("route=/v1/chat/completions")
    assert {one["route"] for one in chats["data"]} == {Route.CHAT.value}
    assert chats["total"] == len(CELLS) // 2
    assert [one["request_id"] for one in listed(f"request_id={CELLS[3].name}")["data"]] == [CELLS[3].name]
    assert listed("model=another")["data"] == []
    assert request(server.admin_port, "GET", "/admin/v1/requests?limt=3").status == 400
    for caller in callers:
        caller.client.close()
    wait_until(lambda: not live_requests(server.admin_port), "all have ended")


def test_the_cache_is_flushed_by_the_engine_itself(server: ServerThread) -> None:
    answer = act(server.admin_port, "cache/flush")
    assert (answer.status, answer.json()) == (
        200,
        {"freed_blocks": 0, "epoch": engine_state(server.admin_port)["epoch"]},
    )


def test_a_restart_that_waits_answers_with_the_new_epoch(server: ServerThread) -> None:
    before, old = server.rest(), engine_state(server.admin_port)
    caller = Caller(server.port, STREAM)
    caller.read_before()
    answer = act(server.admin_port, "engine/restart", {"wait_s": 60})
    assert (answer.status, answer.json()) == (200, {"status": "ready", "epoch": old["epoch"] + 1})
    caller.read_rest()
    assert [error["code"] for error in caller.stream().errors] == ["engine_lost"]
    caller.client.close()
    new = engine_state(server.admin_port)
    assert (new["epoch"], new["poison_suspects"]) == (old["epoch"] + 1, 0)
    server.wait_back(before)


def test_restarts_at_the_same_time_are_one(server: ServerThread) -> None:
    old = engine_state(server.admin_port)["epoch"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: act(server.admin_port, "engine/restart"), range(4)))
    assert {(answer.status, answer.json()["epoch"]) for answer in answers} == {(202, old + 1)}
    wait_until(lambda: engine_state(server.admin_port)["epoch"] > old, "the new engine")
    assert (read_ready(server.admin_port).status, engine_state(server.admin_port)["epoch"]) == (200, old + 1)


def test_a_drain_that_is_asked_for_ends_the_program_clean() -> None:  # LIFE-1
    with ServerProcess("scripted", server__drain_timeout_s=3600) as program:
        caller = Caller(program.port, STREAM)
        caller.read_before()
        first = act(program.admin_port, "drain")
        assert (first.status, first.json()) == (
            202,
            {"status": "draining", "timeout_s": 3600.0, "was_draining": False},
        )
        ready = read_ready(program.admin_port)
        assert (ready.status, ready.json()["error"]["code"]) == (503, "server_draining")
        refused = request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT))
        assert (refused.status, refused.headers["connection"]) == (503, "close")
        again = act(program.admin_port, "drain", {"timeout_s": 0.1})
        assert again.json() == {"status": "draining", "timeout_s": 0.1, "was_draining": True}
        caller.read_rest()
        assert [error["code"] for error in caller.stream().errors] == ["server_draining"]
        assert program.wait() == 0
        caller.client.close()
    acts = [(record["action"], record["status"]) for record in audit_lines(program.lines)]
    assert acts == [("/admin/v1/drain", 202)] * 2


def test_an_idle_server_answers_until_the_drain_delay_is_over() -> None:  # LIFE-1
    with ServerProcess("scripted", server__drain_delay_s=3600) as program:
        program.signal()
        wait_until(lambda: read_ready(program.admin_port).status == 503, "draining")
        for _ in range(2):
            refused = request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT))
            assert refused.json()["error"]["code"] == "server_draining"
        program.signal()
        assert request(program.port, "GET", "/healthz").status == 200, "a second signal cuts nothing short"


def chat(pieces: str, **script: object) -> dict[str, Any]:
    return ask(Route.CHAT, {"pieces": hex_pieces(*pieces), **script}, stream=True)


def test_several_processes_obey_as_one() -> None:
    with ServerProcess("scripted", server__workers=2, server__drain_timeout_s=3600) as program:
        clients = [RawClient(program.port) for _ in range(6)]
        heads = []
        for number, client in enumerate(clients):
            client.post(Route.CHAT.value, chat("ab", delays_s=[0, 600]), {"X-Request-Id": f"r{number}"})
            heads.append(client.read_head())
        live = live_requests(program.admin_port)
        assert len(live) == 6
        some = request(program.admin_port, "GET", "/admin/v1/requests?limit=2").json()
        assert (len(some["data"]), some["total"]) == (2, 6)
        for number in (0, 1):
            assert act(program.admin_port, f"requests/{live[f'r{number}']['id']}/abort").status == 200
            clients[number].read_body(heads[number])
            assert read_stream(heads[number].body).errors[0]["code"] == "deadline_exceeded"
        gone = f"requests/{live['r0']['id']}/abort"
        wait_until(lambda: act(program.admin_port, gone).status == 404, "the engine has let go")
        assert act(program.admin_port, "cache/flush").json()["freed_blocks"] == 0
        assert act(program.admin_port, "engine/restart", {"wait_s": 60}).json() == {"status": "ready", "epoch": 2}
        for client, head in list(zip(clients, heads, strict=True))[2:]:
            client.read_body(head)
            assert read_stream(head.body).errors[0]["code"] == "engine_lost"
        for client in clients:
            client.close()
        wait_until(lambda: read_ready(program.admin_port).status == 200, "the workers are ready again")
        state = engine_state(program.admin_port)
        assert (state["poison_suspects"], state["admission"]["num_requests"]) == (0, 0)
        assert act(program.admin_port, "drain").status == 202
        assert program.wait() == 0
