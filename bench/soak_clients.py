"""What the clients of the soak do, and what each of them says became of its requests."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import harness_path  # noqa: F401 before the harness
from harness.event_stream import read_stream
from harness.faults import Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_view import live_requests

COMPLETED, REFUSED, ABORTED, FAILED = "completed", "refused", "aborted", "failed"
REPLAYED = "replayed"
"""Answered from the ledger of idempotency keys: no work, and counted by itself."""
OUTCOME_OF_CODE = {
    "invalid_value": REFUSED,
    "queue_full": REFUSED,
    "no_capacity": REFUSED,
    "engine_unavailable": REFUSED,
    "deadline_unreachable": REFUSED,
    "deadline_exceeded": ABORTED,
    "engine_lost": FAILED,
    "engine_refused": FAILED,
    "idempotency_key_in_use": REFUSED,
}
NUM_PIECES, STEP_S = 30, 0.02
FLOOD = {"pieces": hex_pieces("0123456789" * 100), "repeat": 2000}
SMALL_BUFFER_BYTES = 4096
PATIENCE_S = 60.0


class Tally:
    """Counts of all clients, and everything that must not happen."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.violations: list[str] = []
        self._lock = threading.Lock()

    def note(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1

    def accuse(self, violation: str) -> None:
        with self._lock:
            if len(self.violations) < 100:
                self.violations.append(violation)

    def begin(self, action: str) -> None:
        with self._lock:
            self.actions[action] += 1


class Turnstile:
    """Keeps engine kills and vanishing clients apart, so that each request has one cause of its end and not two."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._num_leaving = 0
        self._is_killing = False

    @contextmanager
    def leaving(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._is_killing)
            self._num_leaving += 1
        try:
            yield
        finally:
            with self._condition:
                self._num_leaving -= 1
                self._condition.notify_all()

    @contextmanager
    def killing(self) -> Iterator[None]:
        with self._condition:
            self._is_killing = True
            self._condition.wait_for(lambda: self._num_leaving == 0)
        try:
            yield
        finally:
            with self._condition:
                self._is_killing = False
                self._condition.notify_all()


@dataclass(slots=True)
class Client:
    """One client after the other, as fast as the answers come. `serves` names what this server can do."""

    number: int
    port: int
    admin_port: int
    tally: Tally
    turnstile: Turnstile
    serves: frozenset[str]
    is_over: threading.Event
    rng: random.Random = field(init=False)
    num_requests: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)

    def run(self) -> None:
        actions: list[tuple[str, Callable[[str], None], int]] = [
            ("stream", self._stream, 30),
            ("whole", self._whole, 20),
            ("several", self._several, 10),
            ("wrong", self._wrong, 5),
            ("leaves", self._leave, 20),
            ("is stuck", self._be_stuck, 4),
            ("hurries", self._hurry, 8 if "deadlines" in self.serves else 0),
            ("repeats", self._repeat, 8 if "idempotency" in self.serves else 0),
        ]
        while not self.is_over.is_set():
            name, act, _ = self.rng.choices(actions, [weight for _, _, weight in actions])[0]
            self.num_requests += 1
            self.tally.begin(name)
            try:
                act(f"c{self.number}-{self.num_requests}")
            except Exception as fault:
                self.tally.accuse(f"{name}: {type(fault).__name__}: {fault}")

    # ---- one request each ----

    def _stream(self, name: str) -> None:
        self._judge(name, self._post(name, self._body(name, stream=True)))

    def _whole(self, name: str) -> None:
        self._judge(name, self._post(name, self._body(name)))

    def _several(self, name: str) -> None:
        body = self._body(name, Route.COMPLETIONS, prompt=["a", "b"], n=2, stream=self.rng.random() < 0.5)
        self._judge(name, self._post(name, body, Route.COMPLETIONS))

    def _wrong(self, name: str) -> None:
        self._judge(name, self._post(name, self._body(name, temperature=-1)))

    def _hurry(self, name: str) -> None:
        body = ask(Route.CHAT, self._script(name) | {"delays_s": [0.0, 0.0, 30.0]}, stream=self.rng.random() < 0.5)
        answer = self._post(name, {**body, "max_tokens": 100}, headers={"X-Deadline-Ms": "400"})
        self._judge(name, answer)

    def _leave(self, name: str) -> None:
        """Leaves in the middle of a request that could not have ended by itself."""
        is_stream = self.rng.random() < 0.5
        script = self._script(name) | {"delays_s": [0.0, 0.0, 30.0]}
        with self.turnstile.leaving():
            client = RawClient(self.port)
            client.post(Route.CHAT.value, ask(Route.CHAT, script, stream=is_stream, max_tokens=100), _named(name))
            if is_stream:
                answer = client.read_head()
                if answer.status != 200:
                    client.read_body(answer)
                    client.close()
                    self._judge(name, answer)
                    return
            else:
                self._wait(lambda: name in live_requests(self.admin_port), "it has arrived")
            client.reset() if self.rng.random() < 0.5 else client.close()
            self._wait(lambda: name not in live_requests(self.admin_port), "it is let go of")
        self.tally.note(ABORTED)

    def _be_stuck(self, name: str) -> None:
        with self.turnstile.leaving(), RawClient(self.port, receive_buffer_bytes=SMALL_BUFFER_BYTES) as client:
            body = ask(Route.CHAT, FLOOD, stream=True, max_tokens=5000)
            client.post(Route.CHAT.value, body, _named(name))
            answer = client.read_head()
            if answer.status != 200:
                client.read_body(answer)
                self._judge(name, answer)
                return
            self._wait(lambda: name not in live_requests(self.admin_port), "it is cut off")
        self.tally.note(ABORTED)

    def _repeat(self, name: str) -> None:
        """Asks, asks again meanwhile, and asks again afterwards, all under one key."""
        body, key = self._body(name, stream=True), {"Idempotency-Key": name}
        with RawClient(self.port) as client:
            client.post(Route.CHAT.value, body, _named(name) | key)
            first = client.read_head()
            if first.status == 200:
                self._judge(name, self._post(name, body, headers=key))
            client.read_body(first)
        outcome = self._judge(name, first)
        again = self._post(name, body, headers=key)
        replay = self._judge(name, again)
        if outcome == COMPLETED and (replay != REPLAYED or again.body != first.body):
            self.tally.accuse(f"{name}: a finished answer was not replayed: {replay}")

    # ---- what came of it ----

    def _judge(self, name: str, answer: Answer) -> str:
        """Counts an answer under what it says; a complete one must hold its own words and no others."""
        outcome = self._outcome(name, answer)
        self.tally.note(outcome)
        return outcome

    def _outcome(self, name: str, answer: Answer) -> str:
        if answer.headers.get("x-request-id") != name:
            self.tally.accuse(f"{name}: answered as {answer.headers.get('x-request-id')}")
        if answer.headers["content-type"] == "application/json":
            parsed = answer.json()
            if answer.status != 200:
                return OUTCOME_OF_CODE.get(parsed["error"]["code"], parsed["error"]["code"])
            texts = [choice.get("message", choice).get("content") or choice.get("text") for choice in parsed["choices"]]
        else:
            stream = read_stream(answer.body)
            if stream.errors:
                return OUTCOME_OF_CODE.get(stream.errors[0]["code"], stream.errors[0]["code"])
            if not answer.is_complete or stream.num_done != 1:
                self.tally.accuse(f"{name}: a stream ended silently")
            num_choices = 1 + max(choice["index"] for chunk in stream.chunks for choice in chunk["choices"])
            texts = [stream.content(index) or stream.text(index) for index in range(num_choices)]
        if set(texts) != {f"{name};" * NUM_PIECES}:
            self.tally.accuse(f"{name}: got {texts[0][:60]!r}")
        return REPLAYED if answer.headers.get("idempotent-replayed") == "true" else COMPLETED

    def _script(self, name: str) -> dict[str, Any]:
        return {"pieces": hex_pieces(f"{name};"), "repeat": NUM_PIECES, "delays_s": [STEP_S], "finish": "eos"}

    def _body(self, name: str, route: Route = Route.CHAT, **fields: Any) -> dict[str, Any]:
        return ask(route, self._script(name), max_tokens=100, **fields)

    def _post(
        self, name: str, body: dict[str, Any], route: Route = Route.CHAT, headers: dict[str, str] | None = None
    ) -> Answer:
        return request(self.port, "POST", route.value, body, _named(name) | (headers or {}))

    def _wait(self, check: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not check():
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(0.02)


def _named(name: str) -> dict[str, str]:
    return {"X-Request-Id": name}


def find_served(port: int) -> frozenset[str]:
    """Returns what this server serves of the things that a soak can use, found out by asking."""
    headers = {"deadlines": {"X-Deadline-Ms": "60000"}, "idempotency": {"Idempotency-Key": "probe"}}
    body = ask(Route.CHAT, {"pieces": hex_pieces("probe")}, max_tokens=10)
    return frozenset(
        name for name, given in headers.items() if request(port, "POST", Route.CHAT.value, body, given).status == 200
    )
