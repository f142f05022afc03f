"""Chat completions outward: events to chunks, and events to one body. The two stand together because they must agree.

Chunk order (CONTRACT.md section 5): an opening chunk with the role for each choice in index order, deltas, one
finishing chunk for each choice with an empty delta, the usage chunk when asked for, the end marker. The official
client concatenates roles, ids and names that come twice, so each is sent once.
"""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tidegate.contract.chat import (
    AnswerCustom,
    AnswerCustomCall,
    AnswerFunction,
    AnswerMessage,
    AnswerToolCall,
    ChatChoice,
    ChatChunkChoice,
    ChatCompletion,
    Delta,
    DeltaCustom,
    DeltaFunction,
    DeltaToolCall,
)
from tidegate.contract.codec import encode_json
from tidegate.contract.logprobs import ChatLogprobs, PromptLogprobs, TokenLogprob, TopLogprob, wire_logprob
from tidegate.inference.event import (
    ChoiceFinished,
    ContentText,
    LogprobEntry,
    ReasoningText,
    StreamEvent,
    ToolCallArguments,
    ToolCallStarted,
)
from tidegate.inference.finish import StopMatch
from tidegate.serving.chunk_head import ChunkHead, ReplyIdentity
from tidegate.serving.output_formats import ReasoningField
from tidegate.serving.usage import TokenCounts

DEAD_END = "grammar_dead_end"
"""The `stop_reason` of a choice whose grammar left no token that could follow. No failure, and nothing to retry."""


def chat_logprobs(entries: list[LogprobEntry]) -> ChatLogprobs:
    """Returns the public `logprobs` object of a chat choice."""
    return ChatLogprobs(content=[_token_logprob(entry) for entry in entries])


def _token_logprob(entry: LogprobEntry) -> TokenLogprob:
    top = [TopLogprob(token=text, logprob=wire_logprob(value), bytes=list(raw)) for text, value, raw in entry.top]
    value = wire_logprob(entry.logprob) if entry.logprob is not None else 0.0
    return TokenLogprob(token=entry.token, logprob=value, bytes=list(entry.token_bytes), top_logprobs=top)


def stop_reason(match: StopMatch | None) -> str | int | UnsetType:
    """Returns what stopped a choice: a stop string, a stop token id, or `grammar_dead_end`; UNSET for an end token."""
    if match is None:
        return UNSET
    if match.is_dead_end:
        return DEAD_END
    if match.text is not None:
        return match.text
    return match.token_id if match.token_id is not None else UNSET


_DELTA_END = b'},"logprobs":null,"finish_reason":null}'


class ChatWriter:
    """Renders one stream's events as bytes. `is_legacy`: calls are told in the deprecated words, `function_call`."""

    def __init__(
        self,
        head: ChunkHead,
        num_choices: int,
        prompt_token_ids: list[int] | None = None,
        *,
        is_legacy: bool = False,
        reasoning_field: ReasoningField = "reasoning_content",
    ) -> None:
        self._head = head
        field = reasoning_field.encode()
        self._reasoning_start = [b'{"index":%d,"delta":{"%s":' % (index, field) for index in range(num_choices)]
        self._is_legacy = is_legacy
        self._num_choices = num_choices
        self._prompt_token_ids = prompt_token_ids
        self._content_start = [b'{"index":%d,"delta":{"content":' % index for index in range(num_choices)]

    def open(self) -> bytes:
        """Returns one opening chunk for each choice."""
        frames = []
        for index in range(self._num_choices):
            choice = ChatChunkChoice(index=index, delta=Delta(role="assistant", content=""), logprobs=None)
            extra = b""
            if self._prompt_token_ids is not None and index == 0:
                extra = b',"prompt_token_ids":' + encode_json(self._prompt_token_ids)
            frames.append(self._head.frame(encode_json(choice), extra))
        return b"".join(frames)

    def render(self, index: int, event: StreamEvent) -> bytes:
        """Returns the chunk of one event."""
        if isinstance(event, ContentText) and not event.logprobs and not event.token_ids:
            text = encode_json(event.text)
            choice = b"".join((self._content_start[index], text, _DELTA_END))
            return self._head.frame(choice)
        if isinstance(event, ReasoningText):
            text = encode_json(event.text)
            return self._head.frame(b"".join((self._reasoning_start[index], text, _DELTA_END)))
        return self._head.frame(encode_json(_chunk_choice(index, event, is_legacy=self._is_legacy)))

    def close(self) -> bytes:
        return self._head.close()


def _chunk_choice(index: int, event: StreamEvent, *, is_legacy: bool) -> ChatChunkChoice:
    match event:
        case ContentText():
            return ChatChunkChoice(
                index=index,
                delta=Delta(content=event.text) if event.text else Delta(),
                logprobs=chat_logprobs(list(event.logprobs)) if event.logprobs else None,
                token_ids=list(event.token_ids) if event.token_ids else UNSET,
            )
        case ToolCallStarted() | ToolCallArguments():
            delta = _call_delta(event, is_legacy=is_legacy)
        case ChoiceFinished():
            reason = stop_reason(event.match)
            return ChatChunkChoice(
                index=index, delta=Delta(), logprobs=None, finish_reason=event.reason.value, stop_reason=reason
            )
        case _:
            raise TypeError(type(event).__name__)
    return ChatChunkChoice(index=index, delta=delta, logprobs=None)


def _call_delta(event: ToolCallStarted | ToolCallArguments, *, is_legacy: bool) -> Delta:
    """A call's first delta says what it is, and carries empty arguments; later ones carry nothing but fragments."""
    name: str | UnsetType = UNSET
    fragment = ""
    if isinstance(event, ToolCallStarted):
        name = event.name
    else:
        fragment = event.fragment
    function: DeltaFunction | UnsetType = UNSET
    custom: DeltaCustom | UnsetType = UNSET
    if event.is_custom:
        custom = DeltaCustom(name=name, input=fragment)
    else:
        function = DeltaFunction(name=name, arguments=fragment)
    if is_legacy:
        return Delta(function_call=function)
    call = DeltaToolCall(index=event.tool_index, function=function, custom=custom)
    if isinstance(event, ToolCallStarted):
        call = replace(call, id=event.call_id, type="custom" if event.is_custom else "function")
    return Delta(tool_calls=[call])


class ChatAssembler:
    """Collects one reply's events into the whole body. `is_legacy` as for the writer."""

    def __init__(
        self,
        identity: ReplyIdentity,
        num_choices: int,
        *,
        want_logprobs: bool,
        is_legacy: bool = False,
        reasoning_field: ReasoningField = "reasoning_content",
    ) -> None:
        self._identity = identity
        self._choices = [_ChatChoice(index, want_logprobs, is_legacy, reasoning_field) for index in range(num_choices)]
        self._prompt_token_ids: list[int] | UnsetType = UNSET
        self._prompt_logprobs: PromptLogprobs | UnsetType = UNSET

    def feed(self, index: int, event: StreamEvent) -> None:
        self._choices[index].feed(event)

    def add_prompt(self, _index: int, token_ids: list[int] | None, logprobs: PromptLogprobs | None) -> None:
        """Adds the extension members that concern the prompt, where they were asked for."""
        self._prompt_token_ids = UNSET if token_ids is None else token_ids
        self._prompt_logprobs = UNSET if logprobs is None else logprobs

    def result(self, counts: TokenCounts) -> bytes:
        """Returns the body's JSON."""
        body = ChatCompletion(
            id=self._identity.reply_id,
            created=self._identity.created,
            model=self._identity.model,
            system_fingerprint=self._identity.fingerprint,
            service_tier="default",
            choices=[choice.to_wire() for choice in self._choices],
            usage=counts.to_wire(),
            prompt_logprobs=self._prompt_logprobs,
            prompt_token_ids=self._prompt_token_ids,
        )
        return encode_json(body)


class _ChatChoice:
    def __init__(self, index: int, want_logprobs: bool, is_legacy: bool, reasoning_field: ReasoningField) -> None:
        self._index = index
        self._reasoning_field = reasoning_field
        self._is_legacy = is_legacy
        self._want_logprobs = want_logprobs
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: list[LogprobEntry] = []
        self._token_ids: list[int] = []
        self._calls: list[tuple[ToolCallStarted, list[str]]] = []
        self._finished: ChoiceFinished | None = None

    def feed(self, event: StreamEvent) -> None:
        match event:
            case ContentText():
                self._content.append(event.text)
                self._logprobs.extend(event.logprobs)
                self._token_ids.extend(event.token_ids)
            case ReasoningText():
                self._reasoning.append(event.text)
            case ToolCallStarted():
                self._calls.append((event, []))
            case ToolCallArguments():
                self._calls[event.tool_index][1].append(event.fragment)
            case ChoiceFinished():
                self._finished = event

    def to_wire(self) -> ChatChoice:
        finished = self._finished
        if finished is None:
            raise RuntimeError(f"choice {self._index} has not finished")
        return ChatChoice(
            index=self._index,
            message=self._message(),
            logprobs=chat_logprobs(self._logprobs) if self._want_logprobs else None,
            finish_reason=finished.reason.value,
            stop_reason=stop_reason(finished.match),
            token_ids=self._token_ids or UNSET,
        )

    def _message(self) -> AnswerMessage:
        message = self._answer()
        if not self._reasoning:
            return message
        text = "".join(self._reasoning)
        if self._reasoning_field == "reasoning":
            return replace(message, reasoning=text)
        return replace(message, reasoning_content=text)

    def _answer(self) -> AnswerMessage:
        content = "".join(self._content)
        calls = [(call, "".join(parts)) for call, parts in self._calls]
        if not calls:
            return AnswerMessage(content=content)
        if self._is_legacy:
            call, arguments = calls[0]
            function = AnswerFunction(name=call.name, arguments=arguments)
            return AnswerMessage(content=content or None, function_call=function)
        return AnswerMessage(
            content=content or None,
            tool_calls=[_answer_call(call, arguments) for call, arguments in calls],
        )


def _answer_call(call: ToolCallStarted, text: str) -> AnswerToolCall | AnswerCustomCall:
    if call.is_custom:
        return AnswerCustomCall(id=call.call_id, custom=AnswerCustom(name=call.name, input=text))
    return AnswerToolCall(id=call.call_id, function=AnswerFunction(name=call.name, arguments=text))
