"""A chat call to a `PreparedCall`: check every field, render the template, tokenize, fix the lengths."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat
from tidegate.errors import InvalidTemplateInput
from tidegate.ids import mint_id
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tool_format import ToolFormat
from tidegate.serving.call import Call
from tidegate.serving.header_rules import read_wishes
from tidegate.serving.message_rules import TemplatedRequest
from tidegate.serving.output_formats import OutputFormats
from tidegate.serving.output_reading import OutputReading, ReadingSource, plan_reading
from tidegate.serving.prepare import ID_ENTROPY_BYTES, Preparation, PromptSource, prepare_prompt
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.request_rules import check_chat
from tidegate.serving.sampling_rules import logprob_counts
from tidegate.serving.script_rules import PlannedScript, plan_script
from tidegate.serving.tool_prompt import messages_with_tools
from tidegate.serving.tool_use import NO_TOOLS, ToolUse, tool_use
from tidegate.text.chat_template import ChatInput

GENERIC = FAMILIES["json"]
"""The format of models that have none of their own."""


def prepare_chat(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    wishes = read_wishes(call.headers)
    request, ignored = preparation.decode(call, decode_chat, ChatRequest)
    model = preparation.check_model(request.model, call.principal)
    check_chat(request, preparation.policy)
    use = tool_use(request)
    vocabulary = preparation.model.tokenizer.vocabulary
    planned = plan_script(request.x_script, is_scripted=preparation.model.is_scripted, base=vocabulary)
    context = preparation.context(call, "chatcmpl-", wishes, request)
    formats = _formats(preparation, planned)
    constraint = preparation.constraint(request, use, formats.tool or GENERIC)
    token_ids = chat_token_ids(request, preparation, use, formats.tool or GENERIC)
    if planned is not None:
        vocabulary = planned.vocabulary
        token_ids = list(planned.prompt_token_ids) if planned.prompt_token_ids is not None else token_ids
    if not token_ids:
        raise InvalidTemplateInput("the chat template leaves nothing for the model to read", param="messages")
    source = PromptSource(token_ids, vocabulary, context.request_id, context.priority, constraint=constraint)
    source = replace(source, reading=_reading(use, formats, preparation, planned))
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
        is_legacy=use.is_legacy,
    )


def _formats(preparation: Preparation, planned: PlannedScript | None) -> OutputFormats:
    """A script may say in which format it writes its calls."""
    formats = preparation.model.formats
    return formats if planned is None or planned.tool is None else replace(formats, tool=planned.tool)


def _reading(
    use: ToolUse, formats: OutputFormats, preparation: Preparation, planned: PlannedScript | None
) -> OutputReading:
    """How the output is read: calls of a model without a format of its own are looked for in the generic one."""
    controls = preparation.model.controls
    tools = use.offered()
    if planned is not None:
        controls = controls.extended(planned.controls)
        tools = tools if planned.reads_calls else OfferedTools()
    if tools:
        formats = replace(formats, tool=formats.tool or GENERIC)
    source = ReadingSource(
        tools=tools,
        controls=controls,
        mint_call_id=lambda: mint_id("call_", preparation.entropy(ID_ENTROPY_BYTES)),
        allows_many_calls=use.allows_many,
        calls_finish=use.calls_finish,
    )
    return plan_reading(formats, source)


def chat_token_ids(
    request: TemplatedRequest, preparation: Preparation, use: ToolUse = NO_TOOLS, form: ToolFormat = GENERIC
) -> list[int]:
    """Returns what the model reads: the rendered template, control tokens included.

    Raises InvalidTemplateInput, and UnsupportedParameter for tools where the model cannot be shown any.
    """
    model = preparation.model
    messages: list[dict[str, Any]] = [msgspec.to_builtins(message) for message in request.messages or []]
    template = model.templates.select(has_tools=bool(use.shown))
    shows_tools = template.capabilities.supports_tools
    if use.shown and not shows_tools:
        messages = messages_with_tools(messages, use, form, template.capabilities)
    num_characters = sum(len(text) for message in messages for text in _texts(message))
    preparation.check_length(num_characters, "messages")
    chat = ChatInput(
        messages,
        tools=[tool.to_template() for tool in use.shown] if shows_tools else None,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=bool(request.continue_final_message),
        variables=request.chat_template_kwargs or {},
    )
    rendered = template.render(chat, date=datetime.fromtimestamp(preparation.clock.wall(), UTC))
    return model.tokenizer.encode_chat(rendered)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if isinstance(part.get("text"), str)]
