"""Before the load: which model there is, whether the server answers at all, and how many tokens a word is. A shell."""

from dataclasses import replace

import msgspec

from tidegate.clock import Clock
from tidegate.loadtest.answer_reader import describe_error
from tidegate.loadtest.ask import Asker
from tidegate.loadtest.dice import Dice
from tidegate.loadtest.http_client import HttpClient, Transfer
from tidegate.loadtest.sample import MEANINGS, Sample
from tidegate.loadtest.session import Turn
from tidegate.loadtest.target import Target, request_of
from tidegate.loadtest.word_text import WordRate, rate_of, write_text

PROBE_WORDS = (16, 96)
PREFLIGHT_TIMEOUT_S = 60.0
MAX_LIST_BYTES = 4 * 1024 * 1024
_ADVICE = {
    401: "give the server's key with --api-key or TIDEGATE_API_KEY",
    403: "this key may not do that",
    404: "no such route or model: look at the address, and at --model",
}


class CannotMeasureError(Exception):
    """The server cannot be put under load; the message says why and what to do."""


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def find_model(target: Target, client: HttpClient) -> Target:
    """Returns the target with a model: its own, else the first that the server names. Raises CannotMeasureError."""
    if target.model:
        return target
    body = bytearray()

    def feed(data: bytes, _at: float) -> None:
        body.extend(data[: MAX_LIST_BYTES - len(body)])

    response = await client.exchange(request_of(target, "GET", target.models_path), feed, PREFLIGHT_TIMEOUT_S)
    if response.transfer is not Transfer.WHOLE:
        raise CannotMeasureError(f"{target.base_url}: {response.transfer.value}: {response.detail}")
    if response.status != 200:
        raise CannotMeasureError(_refused(f"{target.base_url}/models", response.status, describe_error(bytes(body))))
    try:
        models = msgspec.json.decode(bytes(body), type=_Models).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        models = []
    if not models:
        raise CannotMeasureError(f"{target.base_url}/models names no model: say one with --model")
    return replace(target, model=models[0].id)


async def probe(target: Target, client: HttpClient, clock: Clock) -> WordRate:
    """Asks two short prompts for one token each; returns how words become tokens. Raises CannotMeasureError."""
    asker = Asker(target, client, clock, PREFLIGHT_TIMEOUT_S)
    points: list[tuple[int, int]] = []
    for num_words in PROBE_WORDS:
        text = write_text(Dice(0, "probe", num_words), num_words)
        sample = Sample(group="probe", due_at=clock.now(), sent_at=clock.now())
        turn = Turn(max_tokens=1, messages=({"role": "user", "content": text},), num_prompt_tokens=num_words)
        await asker.ask(turn, list(turn.messages), sample)
        if sample.is_error:
            raise CannotMeasureError(_told(target, sample))
        if sample.num_prompt_tokens is not None:
            points.append((num_words, sample.num_prompt_tokens))
    return rate_of(points[0], points[1]) if len(points) == len(PROBE_WORDS) else WordRate()


def _told(target: Target, sample: Sample) -> str:
    kind, where = sample.ending, f"{target.base_url} ({target.model})"
    if kind.startswith("http_"):
        return _refused(where, int(kind.removeprefix("http_")), sample.detail)
    return f"{where}: {MEANINGS.get(kind, kind)}{f': {sample.detail}' if sample.detail else ''}"


def _refused(where: str, status: int | None, says: str) -> str:
    advice = _ADVICE.get(status or 0)
    return f"{where} answers {status}{f': {says}' if says else ''}{f' ({advice})' if advice else ''}"
