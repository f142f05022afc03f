"""Rules on messages and on what goes into the chat template with them; shared by chat and tokenize requests."""

from collections.abc import Sequence

from tidegate.contract.bounds import over_limit
from tidegate.contract.chat import ChatRequest
from tidegate.contract.messages import AssistantMessage, ChatMessage, RefusalPart, TextPart, UserMessage
from tidegate.contract.quote import quote
from tidegate.contract.tokenize import TokenizeRequest
from tidegate.errors import InvalidValue, MissingField, UnsupportedParameter
from tidegate.serving.request_policy import RequestPolicy

TemplatedRequest = ChatRequest | TokenizeRequest


def check_messages(messages: Sequence[ChatMessage], policy: RequestPolicy) -> None:
    """Raises MissingField for an assistant turn that says nothing, InvalidValue for too many messages."""
    if len(messages) > policy.limits.messages:
        raise over_limit("messages", "messages", value=policy.limits.messages, actual=len(messages))
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.is_empty:
            param = f"messages[{index}].content"
            raise MissingField(f"{param}: this field is required where there are no tool calls", param=param)


def refuse_media(messages: Sequence[ChatMessage]) -> None:
    """Raises UnsupportedParameter for the first part that is not text, without looking into it."""
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.audio is not None:
            raise _unserved(f"messages[{index}].audio", "audio")
        if not isinstance(message, UserMessage) or isinstance(message.content, str):
            continue
        for place, part in enumerate(message.content):
            if not isinstance(part, TextPart | RefusalPart):
                kind = str(part.__struct_config__.tag)
                raise _unserved(f"messages[{index}].content[{place}]", f"{kind} parts")


def _unserved(param: str, what: str) -> UnsupportedParameter:
    return UnsupportedParameter(f"{param}: the served model takes text only, no {what}", param=param)


def check_continuation(request: TemplatedRequest) -> None:
    """`continue_final_message` needs a last message with text from the assistant, and excludes an opened turn."""
    if not request.continue_final_message:
        return
    param = "continue_final_message"
    if request.add_generation_prompt:
        raise InvalidValue(f"{param}: excludes add_generation_prompt", param=param)
    last = request.messages[-1] if request.messages else None
    says_nothing = not isinstance(last, AssistantMessage) or (last.content is None and not last.spoken_text)
    if not isinstance(last, AssistantMessage) or says_nothing or last.tool_calls:
        raise InvalidValue(f"{param}: the last message must be text from the assistant", param=param)


def check_template(request: TemplatedRequest, policy: RequestPolicy) -> None:
    """Refuses a template that the caller brings, and variables that only the server sets."""
    if request.chat_template is not None and not policy.allows_chat_template:
        message = "chat_template: this server uses the model's own template only"
        raise InvalidValue(message, param="chat_template")
    for name in request.chat_template_kwargs or {}:
        if name in policy.reserved_template_names:
            message = f"chat_template_kwargs: {quote(name)} is set by the server only"
            raise InvalidValue(message, param="chat_template_kwargs")
