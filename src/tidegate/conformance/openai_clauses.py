"""Rules of the public OpenAI contract (OpenAPI document 2.3.0, the official Python client 3.57) and of the standards
below it. Name: (the rule in our words, where it is written).
"""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"
_CLIENT = "openai-python 3.57.0"

OPENAI: Mapping[str, tuple[str, str]] = {
    "chat.object": (
        "A chat completion has id, object `chat.completion`, created, model and choices; a choice has index, message, "
        "finish_reason and logprobs; a message has role `assistant`, content and refusal.",
        f"{_SPEC}, CreateChatCompletionResponse",
    ),
    "http.closure": (
        "Who serves connections watches for their closing and reclaims what they held.",
        "RFC 9112, section 9.5",
    ),
    "http.concurrency": (
        "Requests on different connections are independent of each other: one that is slow does not hold up others.",
        "RFC 9110, section 3.3 (requests are stateless and understood in isolation); RFC 9112, section 9.4",
    ),
    "http.framing": (
        "A message's content has the length that its framing says; a request is one message however it is cut up, and "
        "a response that lacks content is incomplete.",
        "RFC 9112, sections 6 and 8",
    ),
    "http.unknown_header": ("Header fields that a recipient does not know are ignored.", "RFC 9110, section 5.1"),
    "overload.answer": (
        "A request that is taken is answered whole; one that is not is refused with 429 or 503 and an error object.",
        f"{_SPEC}, responses and ErrorResponse of createChatCompletion; RFC 9110, section 15.6.4",
    ),
}
