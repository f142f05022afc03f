"""A chat call to a `PreparedCall`: check every field, render the template, tokenize, fix the lengths."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat
from tidegate.errors import InvalidTemplateInput
from tidegate.serving.call import Call
from tidegate.serving.header_rules import read_wishes
from tidegate.serving.message_rules import TemplatedRequest
from tidegate.serving.prepare import Preparation, PromptSource, prepare_prompt
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.request_rules import check_chat
from tidegate.serving.sampling_rules import logprob_counts
from tidegate.serving.script_rules import plan_script
from tidegate.text.chat_template import ChatInput


def prepare_chat(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    wishes = read_wishes(call.headers)
    request, ignored = preparation.decode(call, decode_chat, ChatRequest)
    model = preparation.check_model(request.model, call.principal)
    check_chat(request, preparation.policy)
    constraint = preparation.constraint(request)
    vocabulary = preparation.model.tokenizer.vocabulary
    planned = plan_script(request.x_script, is_scripted=preparation.model.is_scripted, base=vocabulary)
    context = preparation.context(call, "chatcmpl-", wishes, request)
    token_ids = chat_token_ids(request, preparation)
    if planned is not None:
        vocabulary = planned.vocabulary
        token_ids = list(planned.prompt_token_ids) if planned.prompt_token_ids is not None else token_ids
    if not token_ids:
        raise InvalidTemplateInput("the chat template leaves nothing for the model to read", param="messages")
    source = PromptSource(token_ids, vocabulary, context.request_id, context.priority, constraint=constraint)
    prompt = prepare_prompt(request, source, preparation, preparation.sampling(request), planned)
    counts = logprob_counts(request)
    options = request.stream_options
    return PreparedCall(
        context=context,
        model=model,
        fingerprint=preparation.fingerprint(),
        prompts=[prompt],
        num_choices=request.n or 1,
        is_stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.continuous_usage_stats),
        num_top=counts.num_output,
        want_token_ids=bool(request.return_token_ids),
        want_prompt_logprobs=counts.returns_prompt,
        ignored_fields=ignored,
        block_tokens=preparation.info.block_tokens,
        constraint=constraint,
    )


def chat_token_ids(request: TemplatedRequest, preparation: Preparation) -> list[int]:
    """Returns what the model reads: the rendered template, control tokens included. Raises InvalidTemplateInput."""
    model = preparation.model
    messages: list[dict[str, Any]] = [msgspec.to_builtins(message) for message in request.messages or []]
    num_characters = sum(len(text) for message in messages for text in _texts(message))
    preparation.check_length(num_characters, "messages")
    chat = ChatInput(
        messages,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=bool(request.continue_final_message),
        variables=request.chat_template_kwargs or {},
    )
    rendered = model.templates.select(has_tools=bool(request.tools)).render(
        chat, date=datetime.fromtimestamp(preparation.clock.wall(), UTC)
    )
    return model.tokenizer.encode_chat(rendered)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if isinstance(part.get("text"), str)]
