"""What the answer structs look like on the wire: what is absent, what is null, and in which order."""

from msgspec import UNSET

from tidegate.contract.chat import (
    AnswerFunction,
    AnswerMessage,
    AnswerToolCall,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatCompletion,
    Delta,
    DeltaFunction,
    DeltaToolCall,
)
from tidegate.contract.codec import encode_json
from tidegate.contract.completion import Completion, CompletionChoice
from tidegate.contract.logprobs import ChatLogprobs, CompletionLogprobs, PromptLogprob, TokenLogprob
from tidegate.contract.model_list import Model, ModelList
from tidegate.contract.tokenize import DetokenizeResponse, TokenizeResponse
from tidegate.contract.usage import PromptTokensDetails, Usage

USAGE = Usage(
    prompt_tokens=1, completion_tokens=2, total_tokens=3, prompt_tokens_details=PromptTokensDetails(cached_tokens=0)
)


def test_a_whole_chat_answer() -> None:
    choice = ChatChoice(index=0, message=AnswerMessage(content="x"), finish_reason="stop", stop_reason="de")
    answer = ChatCompletion(id="i", created=1, model="m", system_fingerprint="f", choices=[choice], usage=USAGE)
    assert encode_json(answer) == (
        b'{"id":"i","object":"chat.completion","created":1,"model":"m","system_fingerprint":"f","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"x","refusal":null},"logprobs":null,"finish_reason":"stop",'
        b'"stop_reason":"de"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,'
        b'"prompt_tokens_details":{"cached_tokens":0}}}'
    )


def test_an_answer_with_a_tool_call_has_null_content() -> None:
    call = AnswerToolCall(id="c", function=AnswerFunction(name="f", arguments="{}"))
    assert encode_json(AnswerMessage(content=None, tool_calls=[call])) == (
        b'{"role":"assistant","content":null,"refusal":null,'
        b'"tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{}"}}]}'
    )


def test_chunks_have_a_finish_reason_that_is_null_until_the_last() -> None:
    opening = ChatChunkChoice(index=0, delta=Delta(role="assistant", content=""))
    assert encode_json(opening) == b'{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}'
    last = ChatChunkChoice(index=0, delta=Delta(), finish_reason="length")
    assert encode_json(last) == b'{"index":0,"delta":{},"finish_reason":"length"}'


def test_usage_on_a_chunk_is_absent_null_or_there() -> None:
    head = b'{"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[]'
    for usage, tail in ((UNSET, b"}"), (None, b',"usage":null}'), (USAGE, b',"usage":' + encode_json(USAGE) + b"}")):
        assert encode_json(ChatChunk(id="i", created=1, model="m", choices=[], usage=usage)) == head + tail


def test_tool_deltas_first_and_later() -> None:
    first = DeltaToolCall(index=0, id="c", type="function", function=DeltaFunction(name="f", arguments=""))
    assert encode_json(first) == b'{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}'
    later = DeltaToolCall(index=0, function=DeltaFunction(arguments="{"))
    assert encode_json(later) == b'{"index":0,"function":{"arguments":"{"}}'


def test_logprobs() -> None:
    token = TokenLogprob(token="a", logprob=-1.0, bytes=[97], top_logprobs=[])
    assert encode_json(ChatLogprobs(content=[token])) == (
        b'{"content":[{"token":"a","logprob":-1.0,"bytes":[97],"top_logprobs":[]}],"refusal":null}'
    )
    columns = CompletionLogprobs(tokens=["a"], token_logprobs=[None], top_logprobs=[None], text_offset=[0])
    assert encode_json(columns) == b'{"tokens":["a"],"token_logprobs":[null],"top_logprobs":[null],"text_offset":[0]}'


def test_a_completion() -> None:
    choice = CompletionChoice(
        index=0, text="x", prompt_logprobs=[None, {"5": PromptLogprob(logprob=-1.0, decoded_token="a")}]
    )
    assert encode_json(Completion(id="i", created=1, model="m", choices=[choice])) == (
        b'{"id":"i","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"x","logprobs":null,'
        b'"finish_reason":null,"prompt_logprobs":[null,{"5":{"logprob":-1.0,"decoded_token":"a"}}]}]}'
    )


def test_models_and_tokens() -> None:
    models = ModelList(data=[Model(id="org/m", created=1, owned_by="tidegate")])
    assert encode_json(models) == (
        b'{"object":"list","data":[{"id":"org/m","object":"model","created":1,"owned_by":"tidegate"}]}'
    )
    assert encode_json(TokenizeResponse(count=1, max_model_len=8, tokens=[5])) == (
        b'{"count":1,"max_model_len":8,"tokens":[5]}'
    )
    assert encode_json(DetokenizeResponse(text="a", prompt="a")) == b'{"text":"a","prompt":"a"}'
