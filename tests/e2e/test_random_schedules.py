"""Many clients that do as they like while the engine dies now and then: every answer is right, every account adds up.

The requests are random by a seed; how they meet is the machine's affair.
"""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.accounting import check_accounts
from harness.event_stream import Stream, read_stream
from harness.faults import Route, ask, hex_pieces
from harness.random_plan import Plan, make_plan
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread
from harness.server_view import read_metrics

pytestmark = pytest.mark.process

NUM_REQUESTS = 500
NUM_CLIENTS = 12
NUM_KILLS = 2
LOST = ("engine_lost", "engine_unavailable")


class Client:
    """Carries out one plan and judges what came of it. `outcome` is a word for the count."""

    def __init__(self, plan: Plan, port: int) -> None:
        self.plan = plan
        self._port = port

    def run(self) -> str:
        plan = self.plan
        with RawClient(self._port) as client:
            client.post(plan.route.value, plan.body, {"X-Request-Id": plan.name})
            if plan.leave_after is not None and not plan.is_stream:
                return self._leave(client)
            answer = client.read_head()
            if plan.leave_after is not None and "transfer-encoding" in answer.headers:
                for _ in range(plan.leave_after):
                    chunk = self._read_chunk(client)
                    if chunk is None:
                        break
                    answer.body += chunk
                self._check_prefix(read_stream(answer.body))
                return self._leave(client)
            client.read_body(answer)
        return self._judge(answer)

    def _read_chunk(self, client: RawClient) -> bytes | None:
        try:
            return client.read_chunk()
        except ConnectionError:
            return None

    def _leave(self, client: RawClient) -> str:
        client.reset() if self.plan.is_reset else client.close()
        return "left"

    def _judge(self, answer: Answer) -> str:
        assert answer.headers["x-request-id"] == self.plan.name
        if answer.headers["content-type"] == "application/json":
            assert answer.is_complete
            if answer.status != 200:
                return self._check_code(answer.json()["error"]["code"])
            return self._check_whole(answer)
        return self._check_stream(answer, read_stream(answer.body))

    def _check_code(self, code: str) -> str:
        if self.plan.is_refused:
            assert code == "invalid_value"
        elif self.plan.must_fail:
            assert code in ("engine_refused", *LOST)
        else:
            assert code in LOST
        return code

    def _check_whole(self, answer: Answer) -> str:
        expected = self.plan.choices
        assert not self.plan.must_fail
        body = answer.json()
        is_chat = self.plan.route is Route.CHAT
        found = [
            (choice["message"]["content"] if is_chat else choice["text"], choice["finish_reason"])
            for choice in body["choices"]
        ]
        assert found == [(choice.text, choice.reason) for choice in expected]
        assert body["usage"]["completion_tokens"] == sum(choice.num_tokens for choice in expected)
        return "complete"

    def _check_stream(self, answer: Answer, stream: Stream) -> str:
        assert (answer.status, stream.findings) == (200, [])
        self._check_prefix(stream)
        if stream.errors:
            assert (answer.is_complete, stream.num_done) == (False, 0)
            assert len(stream.errors) == 1
            assert "error" in stream.chunks[-1]
            return self._check_code(stream.errors[0]["code"])
        assert not self.plan.must_fail
        assert (answer.is_complete, stream.num_done, stream.is_done_last) == (True, 1, True)
        assert stream.usage is not None
        assert stream.usage["completion_tokens"] == sum(choice.num_tokens for choice in self.plan.choices)
        for index, choice in enumerate(self.plan.choices):
            assert self._text(stream, index) == choice.text
            assert stream.finish_reasons(index) == [choice.reason]
            assert stream.choices(index)[-1]["finish_reason"] is not None
        return "complete"

    def _check_prefix(self, stream: Stream) -> None:
        """Holds at any moment: nothing but this request's own text, in order, and a finish only after all of it."""
        for index, choice in enumerate(self.plan.choices):
            text = self._text(stream, index)
            assert choice.text.startswith(text)
            if reasons := stream.finish_reasons(index):
                assert (text, reasons) == (choice.text, [choice.reason])

    def _text(self, stream: Stream, index: int) -> str:
        return stream.content(index) if self.plan.route is Route.CHAT else stream.text(index)


class Turmoil:
    """Runs all plans, and kills the engine at given numbers of answers."""

    def __init__(self, server: ServerThread, kill_at: set[int]) -> None:
        self.outcomes: Counter[str] = Counter()
        self._server = server
        self._kill_at = kill_at
        self._lock = threading.Lock()

    def run(self, plans: list[Plan]) -> None:
        with ThreadPoolExecutor(NUM_CLIENTS) as pool:
            for finished in [pool.submit(self._run_one, plan) for plan in plans]:
                finished.result()

    def _run_one(self, plan: Plan) -> None:
        outcome = Client(plan, self._server.port).run()
        with self._lock:
            self.outcomes[outcome] += 1
            is_due = self.outcomes.total() in self._kill_at
        if is_due:
            self._server.kill_engine()
        if outcome in LOST:
            self._server.wait_ready()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_clients_do_every_answer_is_right_and_every_account_adds_up(seed: int) -> None:  # ISO-1 SEC-18
    rng = random.Random(seed)
    plans = [make_plan(rng, number) for number in range(NUM_REQUESTS)]
    kill_at = {NUM_REQUESTS * (kill + 1) // (NUM_KILLS + 1) for kill in range(NUM_KILLS)}
    with ServerThread("scripted", engine__max_sequences=12, engine__num_blocks=64, model__max_model_len=1024) as server:
        request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}, max_tokens=5))
        before, counted = server.rest(), read_metrics(server.admin_port)
        turmoil = Turmoil(server, kill_at)
        turmoil.run(plans)
        server.wait_ready()
        server.wait_back(before)
        now = read_metrics(server.admin_port)
        log = server.take_log()

    def count(name: str, **labels: str) -> float:
        return now.since(counted, name, **labels)

    outcomes = turmoil.outcomes
    assert outcomes["complete"] > NUM_REQUESTS / 3
    assert outcomes["left"] > NUM_REQUESTS / 10
    assert outcomes["engine_refused"] > 0
    accounts = check_accounts(counted, now, is_exact=False)
    assert NUM_REQUESTS - outcomes["left"] <= accounts.received <= NUM_REQUESTS
    assert accounts.completed >= outcomes["complete"]
    assert count("aborts_total") == count("aborts_total", cause="client_gone") <= outcomes["left"]
    for code in ("engine_lost", "engine_refused", "engine_unavailable", "invalid_value"):
        assert count("request_errors_total", code=code) >= outcomes[code]
    assert count("engine_restarts_total") == NUM_KILLS
    assert "traceback" not in log
