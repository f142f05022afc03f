"""Chat messages, tagged by `role`, and their content parts, tagged by `type` (OpenAI chat completions).

Absent and null are the same, None; except that a role which needs content refuses null. With `omit_defaults`,
`msgspec.to_builtins(message)` gives a message back in the form in which it was sent, without the absent members.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tidegate.contract.bounds import NonEmptyText


class ContentPart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of the parts. A cache break point is a hint without effect here."""

    prompt_cache_breakpoint: dict[str, Any] | None = None


class TextPart(ContentPart, frozen=True, kw_only=True, tag="text"):
    text: str


class RefusalPart(ContentPart, frozen=True, kw_only=True, tag="refusal"):
    refusal: str


class ImageUrl(Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: str
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(ContentPart, frozen=True, kw_only=True, tag="image_url"):
    image_url: ImageUrl


class InputAudio(Struct, frozen=True, kw_only=True):
    data: str
    format: Literal["wav", "mp3"]


class AudioPart(ContentPart, frozen=True, kw_only=True, tag="input_audio"):
    input_audio: InputAudio


class FileReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class FilePart(ContentPart, frozen=True, kw_only=True, tag="file"):
    file: FileReference


TextContent = str | Annotated[list[TextPart], Meta(min_length=1)]
UserPart = TextPart | ImagePart | AudioPart | FilePart
UserContent = str | Annotated[list[UserPart], Meta(min_length=1)]
AssistantPart = TextPart | RefusalPart
AssistantContent = str | Annotated[list[AssistantPart], Meta(min_length=1)]


class CalledFunction(Struct, frozen=True, kw_only=True):
    """`arguments` is JSON text in the model's own characters."""

    name: str
    arguments: str


class FunctionToolCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    id: NonEmptyText
    function: CalledFunction


class CustomInput(Struct, frozen=True, kw_only=True):
    name: str
    input: str


class CustomToolCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    id: NonEmptyText
    custom: CustomInput


class AudioReference(Struct, frozen=True, kw_only=True):
    id: str


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role"):
    """Base of the messages."""

    name: str | None = None


class SystemMessage(Message, frozen=True, kw_only=True, tag="system"):
    content: TextContent


class DeveloperMessage(Message, frozen=True, kw_only=True, tag="developer"):
    content: TextContent


class UserMessage(Message, frozen=True, kw_only=True, tag="user"):
    content: UserContent


class AssistantMessage(Message, frozen=True, kw_only=True, tag="assistant"):
    """Content may be missing where the turn has something else: calls, a refusal, audio, or reasoning."""

    content: AssistantContent | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[FunctionToolCall | CustomToolCall] | None = None
    function_call: CalledFunction | None = None
    audio: AudioReference | None = None

    @property
    def spoken_text(self) -> str:
        """What a continuation of this turn goes on with: its content, or its reasoning where there is no content."""
        content = self.content
        if isinstance(content, list):
            return "\n".join(part.text if isinstance(part, TextPart) else part.refusal for part in content)
        return content or self.reasoning_content or self.reasoning or ""

    @property
    def is_empty(self) -> bool:
        """Whether the turn says nothing at all."""
        has_text = self.content is not None or self.reasoning_content is not None or self.reasoning is not None
        has_act = bool(self.tool_calls) or self.function_call is not None
        return not (has_text or has_act or self.refusal is not None or self.audio is not None)


class ToolMessage(Message, frozen=True, kw_only=True, tag="tool"):
    content: TextContent
    tool_call_id: NonEmptyText


class FunctionMessage(Struct, frozen=True, kw_only=True, tag_field="role", tag="function"):
    """The deprecated form of a tool's answer."""

    name: str
    content: str | None


ChatMessage = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage
