"""The decoders and the encoder, built once.

What is accepted: JSON of RFC 8259 in UTF-8, without byte order mark. Of equal keys the last one counts. A lone
surrogate escape, NaN, Infinity and a number beyond the range of a double are refused. Types are strict: no strings for
numbers, no numbers with a fraction part for integers, no booleans for numbers.

What is written: one line of JSON in UTF-8, without control characters. U+2028, U+2029 and U+0085, which some readers
take for line ends, are escaped; a number that is not finite would become null, never invalid JSON.
"""

from typing import TypeVar

import msgspec

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.classify import ClassifyRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.decode_fault import json_fault, value_fault
from tidegate.contract.embeddings import EmbeddingRequest
from tidegate.contract.json_depth import check_json_depth
from tidegate.contract.json_size import check_json_size
from tidegate.contract.score import RerankRequest, ScoreRequest
from tidegate.contract.tokenize import DetokenizeRequest, TokenizeRequest
from tidegate.errors import InvalidRequest

_T = TypeVar("_T")


class _ModelOnly(msgspec.Struct):
    model: str | None = None


_CHAT = msgspec.json.Decoder(ChatRequest)
_COMPLETION = msgspec.json.Decoder(CompletionRequest)
_EMBEDDINGS = msgspec.json.Decoder(EmbeddingRequest)
_SCORE = msgspec.json.Decoder(ScoreRequest)
_RERANK = msgspec.json.Decoder(RerankRequest)
_CLASSIFY = msgspec.json.Decoder(ClassifyRequest)
_TOKENIZE = msgspec.json.Decoder(TokenizeRequest)
_DETOKENIZE = msgspec.json.Decoder(DetokenizeRequest)
_MODEL_ONLY = msgspec.json.Decoder(_ModelOnly)
_VALUE = msgspec.json.Decoder()
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER = msgspec.json.Encoder()

_LINE_SEPARATORS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\u0085".encode(), b"\\u0085"),
)


def decode_chat(body: bytes, limits: Limits) -> ChatRequest:
    """Reads a chat request. Raises InvalidJson, MissingField or InvalidValue, as do all functions here."""
    return _decode(_CHAT, body, limits)


def decode_completion(body: bytes, limits: Limits) -> CompletionRequest:
    return _decode(_COMPLETION, body, limits)


def decode_embeddings(body: bytes, limits: Limits) -> EmbeddingRequest:
    return _decode(_EMBEDDINGS, body, limits)


def decode_score(body: bytes, limits: Limits) -> ScoreRequest:
    return _decode(_SCORE, body, limits)


def decode_rerank(body: bytes, limits: Limits) -> RerankRequest:
    return _decode(_RERANK, body, limits)


def decode_classify(body: bytes, limits: Limits) -> ClassifyRequest:
    return _decode(_CLASSIFY, body, limits)


def decode_tokenize(body: bytes, limits: Limits) -> TokenizeRequest:
    return _decode(_TOKENIZE, body, limits)


def decode_detokenize(body: bytes, limits: Limits) -> DetokenizeRequest:
    return _decode(_DETOKENIZE, body, limits)


def peek_model(body: bytes, limits: Limits) -> str | None:
    """Returns the model that a request asks for; None where it asks for none, or is wrong in any way."""
    try:
        return _decode(_MODEL_ONLY, body, limits).model
    except InvalidRequest:
        return None


def decode_value(text: bytes, limits: Limits) -> object:
    """Reads any JSON value."""
    return _decode(_VALUE, text, limits)


def decode_members(text: bytes, limits: Limits) -> dict[str, msgspec.Raw]:
    """Reads an object's members without looking into them."""
    return _decode(_MEMBERS, text, limits)


def _decode(decoder: "msgspec.json.Decoder[_T]", body: bytes, limits: Limits) -> _T:
    check_json_depth(body, limits.json_depth)
    check_json_size(body)
    try:
        if not body.isascii():
            body.decode()  # members that nobody asked for would be skipped unread
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise value_fault(str(error)) from None
    except msgspec.DecodeError as error:
        raise json_fault(str(error), body) from None
    except UnicodeDecodeError as error:
        raise json_fault(f"invalid UTF-8 (byte {error.start})", body) from None
    except RecursionError:
        raise json_fault("it nests too deeply", body) from None


def encode_json(value: object) -> bytes:
    """Writes a struct, or any value of builtin types, as one line of JSON."""
    text = _ENCODER.encode(value)
    if text.isascii():
        return text
    for raw, escaped in _LINE_SEPARATORS:
        if raw in text:
            text = text.replace(raw, escaped)
    return text
