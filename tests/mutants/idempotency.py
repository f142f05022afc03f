"""What breaks idempotency."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsErrors, EditsHead, Headers, Heard, Mutant, Said

KEY = "Idempotency-Key"
REPLAYED = ("Idempotent-Replayed", "true")


def with_key(heard: Heard, key: str | None) -> Heard:
    """Returns the request with another key, or with none."""
    headers = [(name, value) for name, value in heard.headers if name.lower() != KEY.lower()]
    headers += [] if key is None else [(KEY, key)]
    return Heard(heard.method, heard.target, headers, heard.body, heard.notes)


@dataclass
class TakesKeyFor(Mutant):
    """`key` gets the request and returns the key that it is taken to have."""

    says: str
    key: Callable[[Heard], str | None]

    def hear(self, heard: Heard) -> Heard | Said:
        return with_key(heard, self.key(heard))


@dataclass
class AltersLater(Mutant):
    """Answers to a key that came `after` times before, or more, are altered: `edit` gets their JSON or chunk."""

    says: str
    edit: Callable[[Any], Any]
    after: int = 1
    seen: dict[str, int] = field(default_factory=dict)

    def hear(self, heard: Heard) -> Heard | Said:
        key = heard.header(KEY) or ""
        heard.notes["is_later"] = self.seen.get(key, 0) >= self.after
        self.seen[key] = self.seen.get(key, 0) + 1
        return heard

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return self.edit(value) if heard.notes["is_later"] else value

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        if not heard.notes["is_later"]:
            yield chunk
        elif (edited := self.edit(chunk)) is not None:
            yield edited


@dataclass
class ReplaysWithWork(Mutant):
    """Gives the recorded bytes, and has the engine run for them all the same."""

    says: str = "runs the engine again for each replay"
    recorded: dict[str, bytes] = field(default_factory=dict)

    def hear(self, heard: Heard) -> Heard | Said:
        if (key := heard.header(KEY)) in self.recorded:
            heard.notes["key"] = key
            return with_key(heard, None)
        return heard

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        key = heard.header(KEY)
        return self.recorded.setdefault(key, body) if key else body

    def head(self, heard: Heard, status: int, headers: Headers) -> tuple[int, Headers]:
        return status, [*headers, REPLAYED] if "key" in heard.notes else headers


@dataclass
class RecordsRefusals(Mutant):
    """A refusal is what the key gets from then on."""

    says: str = "replays refusals"
    recorded: dict[str, bytes] = field(default_factory=dict)

    def hear(self, heard: Heard) -> Heard | Said:
        if (body := self.recorded.get(heard.header(KEY) or "")) is not None:
            return Said(400, body, [("Content-Type", "application/json"), REPLAYED])
        return heard

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        if status == 400 and (key := heard.header(KEY)):
            self.recorded[key] = body
        return body


@dataclass
class ReplaysTheCutOff(AltersLater):
    """A stream that was left is replayed up to where it was left."""

    def frame(self, heard: Heard, data: str, position: int) -> Iterable[bytes]:
        if not heard.notes["is_later"] or position < 3:
            yield from super().frame(heard, data, position)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:40]


def _by_bytes(heard: Heard) -> str | None:
    key = heard.header(KEY)
    return key and _digest(key.encode(), heard.body)


def _by_path(heard: Heard) -> str | None:
    key = heard.header(KEY)
    return key and _digest(key.encode(), heard.target.encode())


def _quotes_and_all(heard: Heard) -> str | None:
    key = heard.header(KEY)
    return key and _digest(key.encode())


def _without(name: str, status: int) -> EditsHead:
    def edit(heard: Heard, said: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        kept = {key: value for key, value in headers.items() if key.lower() != name}
        return said, kept if said == status else headers

    return EditsHead(f"leaves {name} out of a {status}", edit)


def _with_code(code: str) -> EditsErrors:
    return EditsErrors(f"says {code}", lambda value: {"error": value["error"] | {"code": code}})


def ignores_keys() -> TakesKeyFor:
    return TakesKeyFor("takes no notice of keys", lambda heard: None)


def refuses_header(name: str, why: str = "refuses a header that it does not know") -> Answers:
    body = json.dumps({"error": {"message": "what is that", "type": "x", "param": None, "code": None}}).encode()
    return Answers(why, lambda heard: Said(400, body) if heard.header(name) else None)


def _longest(heard: Heard) -> Said | None:
    key = heard.header(KEY)
    return Said(400, b"{}") if key and len(key) > 128 else None


_INTO_ONE = TakesKeyFor("remembers answers by the body alone", lambda heard: _digest(heard.body))


def _later_time(value: Any) -> Any:
    return value | {"created": value.get("created", 0) + 1}


MUTANTS: Mutants = {
    "idempotency.replay_whole": (
        ignores_keys(),
        AltersLater("writes the record anew", _later_time),
        _without("idempotent-replayed", 200),
    ),
    "idempotency.replay_stream": (
        ignores_keys(),
        AltersLater("loses the usage chunk of the record", lambda chunk: chunk if chunk["choices"] else None),
    ),
    "idempotency.replay_sampled": (ignores_keys(),),
    "idempotency.replay_completion": (ignores_keys(), AltersLater("writes the record anew", _later_time)),
    "idempotency.canonical_json": (TakesKeyFor("compares bodies byte by byte", _by_bytes),),
    "idempotency.quoted_key": (TakesKeyFor("takes quotes for a part of the key", _quotes_and_all),),
    "idempotency.many_replays": (AltersLater("mixes replays up under load", _later_time, after=5),),
    "idempotency.not_counted_again": (ReplaysWithWork(),),
    "idempotency.live_duplicate": (
        ignores_keys(),
        _without("retry-after", 409),
        _with_code("conflict"),
    ),
    "idempotency.one_run": (ignores_keys(),),
    "idempotency.two_keys": (_INTO_ONE,),
    "idempotency.no_key": (_INTO_ONE,),
    "idempotency.other_body": (
        TakesKeyFor("compares bodies byte by byte", _by_bytes),
        _with_code("invalid_value"),
    ),
    "idempotency.other_form": (TakesKeyFor("compares bodies byte by byte", _by_bytes),),
    "idempotency.other_path": (TakesKeyFor("keeps keys apart by path", _by_path),),
    "idempotency.after_refusal": (RecordsRefusals(),),
    "idempotency.refusal_is_not_recorded": (RecordsRefusals(),),
    "idempotency.after_cancellation": (ReplaysTheCutOff("replays what was cut off", lambda chunk: chunk),),
    "idempotency.empty_key": (ignores_keys(),),
    "idempotency.empty_quoted_key": (ignores_keys(),),
    "idempotency.long_key": (ignores_keys(),),
    "idempotency.key_with_space": (ignores_keys(),),
    "idempotency.key_beyond_ascii": (ignores_keys(),),
    "idempotency.two_headers": (TakesKeyFor("takes the first of two keys", lambda heard: heard.header(KEY)),),
    "idempotency.longest_key": (Answers("takes keys of 128 characters at most", _longest),),
    "idempotency.unknown_header": (refuses_header(KEY),),
}
