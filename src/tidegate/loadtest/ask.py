"""One request of a load: sent, read, and made a sample of. A shell."""

from dataclasses import dataclass

from tidegate.clock import Clock
from tidegate.loadtest.answer_reader import AnswerReader, describe_error
from tidegate.loadtest.http_client import HttpClient, Response, Transfer
from tidegate.loadtest.sample import Ending, Sample
from tidegate.loadtest.session import Message, Turn
from tidegate.loadtest.target import Target, body_of, request_of

_ENDINGS = {
    Transfer.CUT: Ending.CUT,
    Transfer.NO_CONNECTION: Ending.NO_CONNECTION,
    Transfer.NOT_HTTP: Ending.GARBAGE,
    Transfer.TIMEOUT: Ending.TIMEOUT,
}
MAX_REFUSAL_BYTES = 64 * 1024


@dataclass(slots=True)
class Asker:
    """Asks one server."""

    target: Target
    client: HttpClient
    clock: Clock
    timeout_s: float

    async def ask(self, turn: Turn, messages: list[Message], sample: Sample) -> str:
        """Fills in the sample as the answer comes; returns its text. Cancelled, the sample stays unfinished."""
        reader = AnswerReader()
        refusal = bytearray()
        sample.token_at = reader.token_at

        def feed(data: bytes, at: float) -> None:
            reader.feed(data, at)
            if not reader.token_at:
                refusal.extend(data[: MAX_REFUSAL_BYTES - len(refusal)])

        data = request_of(self.target, "POST", self.target.path, body_of(self.target, turn, messages))
        sample.sent_at = sample.ended_at = self.clock.now()
        try:
            response = await self.client.exchange(data, feed, self.timeout_s)
        except BaseException:
            sample.ended_at = self.clock.now()
            _count(sample, reader)
            raise
        sample.sent_at, sample.ended_at = response.sent_at, response.ended_at
        sample.ending, sample.detail = _conclude(response, reader, bytes(refusal))
        _count(sample, reader)
        return reader.text


def _conclude(response: Response, reader: AnswerReader, refusal: bytes) -> tuple[str, str]:
    if response.status is not None and response.status != 200:
        return f"http_{response.status}", describe_error(refusal)
    if response.transfer is not Transfer.WHOLE:
        if reader.fault is not None:
            return reader.fault[0].value, reader.fault[1]
        return _ENDINGS[response.transfer].value, response.detail
    ending, detail = reader.finish()
    return ending.value, detail


def _count(sample: Sample, reader: AnswerReader) -> None:
    sample.finish_reason = reader.finish_reason
    sample.num_tokens = len(reader.token_at)
    usage = reader.usage
    if usage is None:
        return
    sample.num_prompt_tokens = usage.prompt_tokens
    if usage.prompt_tokens_details is not None:
        sample.num_cached_tokens = usage.prompt_tokens_details.cached_tokens
    if usage.completion_tokens is not None:
        sample.num_tokens, sample.is_counted_by_server = usage.completion_tokens, True
