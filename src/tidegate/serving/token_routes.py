"""POST /v1/tokenize and /v1/detokenize: the served tokenizer itself, exact by construction.

The tokens of a chat are those that the chat route would use: the count equals its `usage.prompt_tokens`.
"""

from msgspec import UNSET

from tidegate.contract.codec import decode_detokenize, decode_tokenize, encode_json
from tidegate.contract.tokenize import DetokenizeRequest, DetokenizeResponse, TokenizeRequest, TokenizeResponse
from tidegate.serving.call import Call
from tidegate.serving.chat_prompt import render_chat
from tidegate.serving.prepare import Preparation
from tidegate.serving.prompt_rules import check_detokenize, check_tokenize, text_to_tokenize
from tidegate.serving.tool_use import tool_use


def tokenize(call: Call, preparation: Preparation) -> bytes:
    """Returns the body. Raises InvalidRequest, UnsupportedParameter or ModelNotFound."""
    request, _ = preparation.decode(call, decode_tokenize, TokenizeRequest)
    preparation.check_model(request.model, call.principal)
    check_tokenize(request, preparation.policy)
    text = text_to_tokenize(request)
    tokenizer = preparation.model.tokenizer
    if text is None:
        form = preparation.model.formats.call_format
        tokens = render_chat(request, preparation, tool_use(request), form).token_ids
    else:
        tokens = tokenizer.encode(text, add_special=request.add_special_tokens is not False, parse_special=False)
    raw = [tokenizer.vocabulary.token_bytes(token_id) for token_id in tokens]
    want_pieces = bool(request.return_pieces or request.with_pieces)
    body = TokenizeResponse(
        count=len(tokens),
        max_model_len=preparation.info.max_model_len,
        tokens=tokens,
        token_strs=[piece.decode("utf-8", "replace") for piece in raw] if request.return_token_strs else UNSET,
        pieces=[piece.hex() for piece in raw] if want_pieces else UNSET,
    )
    return encode_json(body)


def detokenize(call: Call, preparation: Preparation) -> bytes:
    """Returns the body. Raises InvalidRequest or ModelNotFound."""
    request, _ = preparation.decode(call, decode_detokenize, DetokenizeRequest)
    preparation.check_model(request.model, call.principal)
    check_detokenize(request.tokens, preparation.info.vocab_size)
    text = preparation.model.tokenizer.decode(request.tokens, skip_special=False)
    return encode_json(DetokenizeResponse(text=text, prompt=text))
