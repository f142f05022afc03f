"""What mixes requests up."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsChunks, EditsHead, EditsValue, Heard, Mutant, Said


@dataclass
class SwapsText(Mutant):
    """A text of one request's answer goes into another's: that of the one before it."""

    says: str = "gives one request's text to another"
    last: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def _swap(self, text: str) -> str:
        with self.lock:
            last, self.last = self.last, text
        return last or text

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for choice in chunk["choices"]:
            if choice["delta"].get("content"):
                choice["delta"]["content"] = self._swap(choice["delta"]["content"])
        yield chunk

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        for choice in value.get("choices", ()):
            if "message" in choice:
                choice["message"]["content"] = self._swap(choice["message"]["content"])
            else:
                choice["text"] = self._swap(choice["text"])
        return value


@dataclass
class Overrides(Mutant):
    """What one request among others is given is what its neighbours ask for: `edit` is applied to the plain ones after
    the first request.
    """

    says: str
    edit: Callable[[dict[str, Any]], dict[str, Any]]
    num_heard: int = 0

    def hear(self, heard: Heard) -> Heard | Said:
        self.num_heard += 1
        value = heard.json
        return heard.with_json(self.edit(value)) if self.num_heard > 1 and isinstance(value, dict) else heard


def _one_id(chunk: Any, position: int) -> Iterable[Any]:
    yield chunk | {"id": "chatcmpl-1"}


def _ids_of_chunks(chunk: Any, position: int) -> Iterable[Any]:
    yield chunk | {"id": f"{chunk['id']}{position % 2}"}


def _busy_name() -> Mutant:
    seen: list[str] = []

    def answer(heard: Heard) -> Said | None:
        name = heard.header("X-Request-Id") or ""
        seen.append(name)
        return Said(400, b'{"error": {"message": "duplicate request id"}}') if seen.count(name) > 1 else None

    return Answers("refuses a second request of the same name", answer)


def _own_name() -> EditsHead:
    return EditsHead(
        "names requests itself",
        lambda heard, status, headers: (status, {**headers, "x-request-id": "other"}),
    )


def _fails_together() -> Mutant:
    bad: list[Heard] = []

    def answer(heard: Heard) -> Said | None:
        value = heard.json
        if isinstance(value, dict) and value.get("temperature") == "hot":
            bad.append(heard)
        return Said(500, b'{"error": {"message": "batch failed"}}') if len(bad) > 1 else None

    return Answers("fails a whole batch for one request", answer)


MUTANTS: Mutants = {
    "isolation.constrained_answers": (SwapsText(),),
    "isolation.constrained_streams": (SwapsText(),),
    "isolation.choices_of_words": (SwapsText(),),
    "isolation.echoed_prompts": (SwapsText(),),
    "isolation.no_foreign_word": (SwapsText(),),
    "isolation.scripted_streams": (SwapsText(),),
    "isolation.ids": (
        EditsChunks("gives all streams one id", _one_id),
        EditsChunks("changes the id in the stream", _ids_of_chunks),
    ),
    "isolation.ids_of_whole_answers": (
        EditsValue("gives all answers one id", lambda value: value | {"id": "chatcmpl-1"}),
    ),
    "isolation.shared_request_id": (_busy_name(), EditsChunks("changes the id in the stream", _ids_of_chunks)),
    "isolation.echoed_request_id": (_own_name(),),
    "isolation.stop": (Overrides("stops all at the stop of one", lambda value: value | {"stop": ["d", "a"]}),),
    "isolation.max_tokens": (Overrides("gives all the limit of one", lambda value: value | {"max_tokens": 2}),),
    "isolation.logit_bias": (
        Overrides("biases all", lambda value: value | {"x_script": {"pieces": ["78"], "repeat": 20}}),
    ),
    "isolation.seeded": (
        Overrides("samples all", lambda value: value | {"x_script": {"pieces": ["79"], "repeat": 20}}),
    ),
    "isolation.budgets": (Overrides("gives all the limit of one", lambda value: value | {"max_tokens": 7}),),
    "isolation.constrained_beside_plain": (
        Overrides(
            "constrains all",
            lambda value: value | {"x_script": {"pieces": [b'{"word":"x"}'.hex()]}},
        ),
        Overrides("constrains none", lambda value: value | {"x_script": {"pieces": [b"Monday".hex()]}}),
    ),
    "isolation.bad_beside_good": (_fails_together(),),
}
