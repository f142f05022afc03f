"""A conversation to the prompt that the model reads: template, tokens, and where in its turn the prompt stops."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidegate.contract.messages import AssistantMessage
from tidegate.errors import UnsupportedParameter
from tidegate.parsers.tool_format import ToolFormat
from tidegate.serving.message_rules import TemplatedRequest
from tidegate.serving.output_formats import GENERIC
from tidegate.serving.prepare import Preparation
from tidegate.serving.prompt_state import PromptState, state_of
from tidegate.serving.template_arguments import template_arguments
from tidegate.serving.tool_prompt import messages_with_tools
from tidegate.serving.tool_use import NO_TOOLS, ToolUse
from tidegate.text.chat_template import ChatInput
from tidegate.text.rendered_prompt import RenderedPrompt


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """`state`: by the markers of the served model. `unread`: names of template variables to report."""

    token_ids: list[int]
    state: PromptState
    unread: tuple[str, ...] = ()


def render_chat(
    request: TemplatedRequest, preparation: Preparation, use: ToolUse = NO_TOOLS, form: ToolFormat = GENERIC
) -> ChatPrompt:
    """Returns what the model reads, control tokens included.

    Raises InvalidTemplateInput, and UnsupportedParameter for tools where the model cannot be shown any, and for what
    the template cannot be told.
    """
    model = preparation.model
    messages: list[dict[str, Any]] = [msgspec.to_builtins(message) for message in request.messages or []]
    template = model.templates.select(has_tools=bool(use.shown))
    shows_tools = template.capabilities.supports_tools
    if use.shown and not shows_tools:
        messages = messages_with_tools(messages, use, form, template.capabilities)
    num_characters = sum(len(text) for message in messages for text in _texts(message))
    preparation.check_length(num_characters, "messages")
    arguments = template_arguments(
        template,
        effort=request.reasoning_effort,
        kwargs=request.chat_template_kwargs or {},
        tells_reasoning=model.formats.tells_reasoning,
        unknown_policy=preparation.unknown_policy,
    )
    chat = ChatInput(
        messages,
        tools=[tool.to_template() for tool in use.shown] if shows_tools else None,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=bool(request.continue_final_message),
        variables=arguments.variables,
    )
    rendered = template.render(chat, date=datetime.fromtimestamp(preparation.clock.wall(), UTC))
    state = _state(request, preparation, rendered)
    return ChatPrompt(model.tokenizer.encode_chat(rendered), state, arguments.unread)


def _state(request: TemplatedRequest, preparation: Preparation, rendered: RenderedPrompt) -> PromptState:
    formats = preparation.model.formats
    last = request.messages[-1] if request.messages and request.continue_final_message else None
    if formats.channels is not None and isinstance(last, AssistantMessage) and not last.content:
        message = "continue_final_message: this model's reasoning is a message of its own, and cannot be continued"
        raise UnsupportedParameter(message, param="continue_final_message")
    markers = formats.reasoning
    if markers is None:
        return PromptState.BEHIND
    if last is None:
        return state_of(rendered, markers)
    said = last.spoken_text if isinstance(last, AssistantMessage) else ""
    return state_of(rendered, markers, continued=said)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if isinstance(part.get("text"), str)]
