"""Legacy completions outward: events to chunks, and events to one body.

Chunks and body have the same shape. There is no role and no opening chunk; echoed prompt text is content like any
other. `logprobs` has parallel lists in every chunk that carries tokens.
"""

from msgspec import UNSET, UnsetType

from tidegate.contract.codec import encode_json
from tidegate.contract.completion import Completion, CompletionChoice
from tidegate.contract.logprobs import CompletionLogprobs, PromptLogprobs, wire_logprob
from tidegate.inference.event import ChoiceFinished, ContentText, LogprobEntry, StreamEvent
from tidegate.serving.chat_writer import stop_reason
from tidegate.serving.chunk_head import ChunkHead, ReplyIdentity
from tidegate.serving.usage import TokenCounts


def completion_logprobs(entries: list[LogprobEntry], num_top: int) -> CompletionLogprobs:
    """Returns the public `logprobs` object of a completion choice. With `num_top` 0 no alternatives were asked for."""
    return CompletionLogprobs(
        tokens=[entry.token for entry in entries],
        token_logprobs=[wire_logprob(entry.logprob) if entry.logprob is not None else None for entry in entries],
        top_logprobs=[_top_map(entry, num_top) for entry in entries],
        text_offset=[entry.text_offset for entry in entries],
    )


def _top_map(entry: LogprobEntry, num_top: int) -> dict[str, float] | None:
    """Alternatives by text, the chosen token among them, as OpenAI has it; null for an unscored token."""
    if entry.logprob is None:
        return None
    top: dict[str, float] = {}
    for text, value, _ in entry.top:
        top.setdefault(text, wire_logprob(value))
    if num_top:
        top.setdefault(entry.token, wire_logprob(entry.logprob))
    return top


class CompletionWriter:
    """Renders one stream's events as bytes. `num_top` is None when no log-probabilities were asked for."""

    def __init__(self, head: ChunkHead, num_top: int | None, prompt_token_ids: list[list[int]] | None = None) -> None:
        self._head = head
        self._num_top = num_top
        self._prompt_token_ids = dict(enumerate(prompt_token_ids)) if prompt_token_ids is not None else {}

    def open(self) -> bytes:
        return b""

    def render(self, index: int, event: StreamEvent) -> bytes:
        """Returns the chunk of one event."""
        match event:
            case ContentText():
                choice = CompletionChoice(
                    index=index,
                    text=event.text,
                    logprobs=self._logprobs(event),
                    token_ids=list(event.token_ids) if event.token_ids else UNSET,
                    prompt_token_ids=self._prompt_token_ids.pop(index, UNSET),
                )
            case ChoiceFinished():
                reason = stop_reason(event.match)
                choice = CompletionChoice(index=index, text="", finish_reason=event.reason.value, stop_reason=reason)
            case _:
                raise TypeError(type(event).__name__)
        return self._head.frame(encode_json(choice))

    def close(self) -> bytes:
        return self._head.close()

    def _logprobs(self, event: ContentText) -> CompletionLogprobs | None:
        if self._num_top is None or not event.logprobs:
            return None
        return completion_logprobs(list(event.logprobs), self._num_top)


class CompletionAssembler:
    """Collects one reply's events into the whole body. `num_top` as for the writer."""

    def __init__(self, identity: ReplyIdentity, num_choices: int, num_top: int | None) -> None:
        self._identity = identity
        self._num_top = num_top
        self._texts: list[list[str]] = [[] for _ in range(num_choices)]
        self._logprobs: list[list[LogprobEntry]] = [[] for _ in range(num_choices)]
        self._token_ids: list[list[int]] = [[] for _ in range(num_choices)]
        self._finished: dict[int, ChoiceFinished] = {}
        self._prompt_token_ids: dict[int, list[int]] = {}
        self._prompt_logprobs: dict[int, PromptLogprobs] = {}

    def feed(self, index: int, event: StreamEvent) -> None:
        match event:
            case ContentText():
                self._texts[index].append(event.text)
                self._logprobs[index].extend(event.logprobs)
                self._token_ids[index].extend(event.token_ids)
            case ChoiceFinished():
                self._finished[index] = event
            case _:
                raise TypeError(type(event).__name__)

    def add_prompt(self, index: int, token_ids: list[int] | None, logprobs: PromptLogprobs | None) -> None:
        """Adds the extension members that concern the prompt to one choice, where they were asked for."""
        if token_ids is not None:
            self._prompt_token_ids[index] = token_ids
        if logprobs is not None:
            self._prompt_logprobs[index] = logprobs

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        body = Completion(
            id=self._identity.reply_id,
            created=self._identity.created,
            model=self._identity.model,
            system_fingerprint=self._identity.fingerprint,
            choices=[self._choice(index) for index in range(len(self._texts))],
            usage=counts.to_wire(),
        )
        return encode_json(body)

    def _choice(self, index: int) -> CompletionChoice:
        finished = self._finished[index]
        entries = self._logprobs[index]
        token_ids: list[int] | UnsetType = self._token_ids[index] or UNSET
        return CompletionChoice(
            index=index,
            text="".join(self._texts[index]),
            logprobs=completion_logprobs(entries, self._num_top) if self._num_top is not None else None,
            finish_reason=finished.reason.value,
            stop_reason=stop_reason(finished.match),
            token_ids=token_ids,
            prompt_logprobs=self._prompt_logprobs.get(index, UNSET),
            prompt_token_ids=self._prompt_token_ids.get(index, UNSET),
        )
