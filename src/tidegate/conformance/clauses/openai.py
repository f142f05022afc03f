"""Rules of the public OpenAI contract (OpenAPI document 2.3.0, the official Python client 3.57) and of the standards
below it. Name: (the rule in our words, where it is written).
"""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"
_CLIENT = "openai-python 3.57.0"
_HTTP = "RFC 9110"

OPENAI: Mapping[str, tuple[str, str]] = {
    "auth.challenge": ("A 401 carries a `WWW-Authenticate` header.", f"{_HTTP}, section 15.5.2"),
    "auth.key": (
        "Every route of the API needs `Authorization: Bearer KEY`; without a valid key nothing is served.",
        f"{_SPEC}, security ApiKeyAuth",
    ),
    "auth.scheme": ("The name of an authentication scheme is read without regard to case.", f"{_HTTP}, section 11.1"),
    "auth.status": (
        "Missing or wrong credentials are a 401, from which clients make an authentication error.",
        f"{_CLIENT}, _make_status_error; {_HTTP}, section 15.5.2",
    ),
    "errors.blame": (
        "A 4xx says that the request is at fault, a 5xx that the server is: clients repeat what got a 5xx.",
        f"{_HTTP}, section 15.5 and 15.6; {_CLIENT}, _should_retry",
    ),
    "errors.code": ("`error.code` is a text or null.", f"{_SPEC}, Error"),
    "errors.media_type": ("An error is of type application/json.", f"{_SPEC}, responses of every operation"),
    "errors.object": (
        'The body of an error is `{"error": {...}}` with message and type, which are texts, and param and code, which '
        "are texts or null.",
        f"{_SPEC}, ErrorResponse and Error",
    ),
    "errors.retry": (
        "Clients repeat on 408, 409, 429 and from 500 on, and obey `x-should-retry` and `retry-after`.",
        f"{_CLIENT}, _should_retry and _parse_retry_after_header; {_HTTP}, section 10.2.3",
    ),
    "errors.status": (
        "What is wrong with a request is told by an HTTP status of 400 or above, also where a stream was asked for; "
        "clients make their exceptions from it.",
        f"{_CLIENT}, _make_status_error",
    ),
    "headers.request_id": (
        "Every answer carries `x-request-id`, which clients keep on answers and exceptions; it names one request.",
        f"OpenAI API reference, debugging requests; {_CLIENT}, BaseModel._request_id",
    ),
    "headers.stream_type": (
        "With `stream: true` the answer is of type text/event-stream, whatever `Accept` says: clients send "
        "application/json there.",
        f"{_SPEC}, createChatCompletion; {_CLIENT}, default_headers",
    ),
    "headers.unknown": ("Header fields that a server does not know are ignored.", f"{_HTTP}, section 5.1"),
    "headers.whole_type": (
        "An answer that is not streamed is of type application/json.",
        f"{_SPEC}, createChatCompletion",
    ),
    "http.coding": (
        "A chunked body is the same body; a media type may have parameters, and its case means nothing; a client may "
        "send in any pieces.",
        "RFC 9112, section 7.1; RFC 9110, section 8.3.1",
    ),
    "http.expect": (
        "A server that is asked for 100-continue answers 100 or a final status.",
        f"{_HTTP}, section 10.1.1",
    ),
    "http.length": ("An invalid Content-Length is an error, answered with 400.", "RFC 9112, section 6.3"),
    "http.methods": (
        "A method that a route does not know is a 405 with `Allow`, one that the server does not know a 501; HEAD is "
        "answered as GET is, without a body.",
        f"{_HTTP}, sections 9.1, 9.3.2, 15.5.6",
    ),
    "http.target": (
        "A path that names nothing is a 404; a letter and its percent-encoding are the same; a query that a route does "
        "not know changes nothing.",
        f"{_HTTP}, section 15.5.5; RFC 3986, section 6.2.2",
    ),
    "json.text": (
        "A body is JSON in UTF-8: no NaN or Infinity, nothing after the value; what is none is a client's fault.",
        "RFC 8259, sections 2, 6 and 8",
    ),
    "models.list": (
        "GET /models is `{object: list, data}`; each model has id, object `model`, created and owned_by.",
        f"{_SPEC}, ListModelsResponse and Model",
    ),
    "models.retrieve": (
        "GET /models/{model} is the model of that id, percent-encoded where it holds a slash.",
        f"{_SPEC}, retrieveModel",
    ),
    "models.unknown": (
        "A model that is not there is a 404, when it is looked up as when it is asked to generate.",
        f"{_SPEC}, retrieveModel; {_CLIENT}, NotFoundError",
    ),
    "parameters.honest": (
        "A field of the API that changes the answer, or what is kept of it, is honoured or refused, never dropped "
        "silently.",
        f"{_SPEC}, CreateChatCompletionRequest and getChatCompletion",
    ),
    "parameters.limit": (
        "`max_tokens` and `max_completion_tokens` bound the tokens of an answer; the prompt and the answer fit the "
        "context, or the request is refused.",
        f"{_SPEC}, CreateChatCompletionRequest",
    ),
    "parameters.messages": (
        "`messages` has at least one message; each has a known role and what that role needs: content, and for a tool "
        "message `tool_call_id`.",
        f"{_SPEC}, ChatCompletionRequestMessage",
    ),
    "parameters.metadata": (
        "`metadata` has at most 16 pairs, keys of at most 64 and values of at most 512 characters.",
        f"{_SPEC}, Metadata",
    ),
    "parameters.null": (
        "Fields that may be null take null as if they were absent.",
        f"{_SPEC}, CreateChatCompletionRequest, nullable members",
    ),
    "parameters.range": (
        "temperature 0 to 2, top_p 0 to 1, penalties -2 to 2, n 1 to 128, stop at most 4, top_logprobs 0 to 20 and "
        "only with logprobs, logit_bias -100 to 100, seed 64 bits, logprobs of completions 0 to 5.",
        f"{_SPEC}, CreateChatCompletionRequest and CreateCompletionRequest",
    ),
    "parameters.required": (
        "`model` and `messages`, or `prompt`, are required.",
        f"{_SPEC}, CreateChatCompletionRequest",
    ),
    "parameters.stream_options": (
        "`stream_options` is set only where `stream` is true.",
        f"{_SPEC}, CreateChatCompletionRequest.stream_options",
    ),
    "parameters.type": (
        "Every field has one type: a text is no number, a boolean no integer.",
        f"{_SPEC}, CreateChatCompletionRequest",
    ),
    "parameters.unions": (
        "`response_format.type` is text, json_object or json_schema; `tool_choice`, roles and parts of content are of "
        "the listed kinds.",
        f"{_SPEC}, CreateChatCompletionRequest",
    ),
}
