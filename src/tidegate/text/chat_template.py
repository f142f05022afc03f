"""A model's chat template: compiled and tried out when it is loaded, rendered for each request.

Decides the prompt of a conversation: which of a model's templates applies, what callers may pass to it, where a
continued message ends. Where the text becomes tokens is `Tokenizer.encode_chat`.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tidegate.errors import InvalidTemplateInput, InvalidValue, MissingField
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.template_budget import RenderBudget, RenderLimits
from tidegate.text.template_env import GLOBAL_NAMES, BrokenTemplate, CompiledTemplate, TemplateRefusal, UnusableTemplate
from tidegate.text.template_guard import END_MARK, ControlGuard, take_marks
from tidegate.text.template_messages import ReasoningField, TemplateCapabilities, prepare_messages
from tidegate.text.template_probe import probe_template

DEFAULT_TEMPLATE = """\
{% if tools %}tools: {{ tools | tojson }}
{% endif %}
{% for message in messages %}
{{ message.role }}: {{ message.content }}
{% for call in message.tool_calls or [] %}
call: {{ call.function.name }} {{ call.function.arguments | tojson }}
{% endfor %}
{% endfor %}
{% if add_generation_prompt %}assistant: {% endif %}"""
"""For models without a template of their own."""

RESERVED_VARIABLES = GLOBAL_NAMES | {
    "add_generation_prompt",
    "bos_token",
    "chat_template",
    "continue_final_message",
    "conversation",
    "eos_token",
    "max_length",
    "messages",
    "pad_token",
    "padding",
    "return_assistant_tokens_mask",
    "return_dict",
    "return_tensors",
    "self",
    "tokenize",
    "tokenizer",
    "tokenizer_kwargs",
    "tools",
    "truncation",
    "unk_token",
}
"""Names that `chat_template_kwargs` may not have; nor may any that begins with an underscore."""

_PROBE_DATE = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChatInput:
    """A conversation to render, messages and tools as the API has them.

    `add_generation_prompt` None means that the caller said nothing: yes, unless the final message is continued.
    `variables` are the caller's `chat_template_kwargs`.
    """

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[Mapping[str, object]] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False
    variables: Mapping[str, object] = field(default_factory=dict)


class ChatTemplate:
    """One compiled template. Safe to render from several threads at once."""

    def __init__(
        self,
        compiled: CompiledTemplate,
        capabilities: TemplateCapabilities,
        *,
        special: Mapping[str, str],
        guard: ControlGuard,
        limits: RenderLimits,
    ) -> None:
        """Use `compile`, which also finds out the capabilities."""
        self._compiled = compiled
        self._special = special
        self._guard = guard
        self._limits = limits
        self.capabilities = capabilities
        self.variables = compiled.variables
        """Names that the template reads, and may be given."""

    @classmethod
    def compile(
        cls,
        source: str,
        *,
        limits: RenderLimits,
        bos_token: str = "",
        eos_token: str = "",
        control_spellings: Iterable[str] = (),
    ) -> "ChatTemplate":
        """Compiles and checks a template. `limits` hold for compiling and for each rendering.

        Raises BrokenTemplate if the source is not valid; UnusableTemplate if it fails, rather than refuses, on every
        conversation it is tried with.
        """
        special = {"bos_token": bos_token, "eos_token": eos_token}
        compiled = CompiledTemplate(source, limits)
        guard = ControlGuard(control_spellings)
        return cls(compiled, _probe(compiled, special, limits), special=special, guard=guard, limits=limits)

    def render(self, chat: ChatInput, *, date: datetime) -> RenderedPrompt:
        """Returns the prompt. `date` is what `strftime_now` tells.

        Raises MissingField for no messages; InvalidValue for reserved variables, unfit contents and contradictory
        wishes; UnsupportedParameter for parts that are not text; InvalidTemplateInput when the template refuses, fails,
        or goes over a limit.
        """
        _check(chat)
        budget = RenderBudget(self._limits)
        prepared = prepare_messages(chat.messages, self.capabilities)
        messages = [self._guard.mark_mapping(message, budget) for message in prepared]
        if chat.continue_final_message:
            _mark_end(messages[-1], self.capabilities.reasoning_field)
        wants_prompt = chat.add_generation_prompt
        variables = {
            "documents": None,
            **self._guard.mark_mapping(chat.variables, budget),
            **self._special,
            "messages": messages,
            "tools": self._guard.mark(chat.tools, budget) if chat.tools else None,
            "add_generation_prompt": not chat.continue_final_message if wants_prompt is None else wants_prompt,
        }
        text = self._compiled.render(variables, date=date, budget=budget)
        if chat.continue_final_message:
            text = _cut_at_end_mark(text)
        prompt = take_marks(text)
        budget.check_output(len(prompt.text.encode("utf-8", "replace")))
        return prompt


class ChatTemplates:
    """A model's templates by name. `tool_use`, where there is one, is for requests with tools; `default` for others."""

    def __init__(self, templates: Mapping[str, ChatTemplate]) -> None:
        """`templates` must hold `default`."""
        self._default = templates["default"]
        self._tool_use = templates.get("tool_use", self._default)

    @classmethod
    def compile(
        cls,
        sources: Mapping[str, str],
        *,
        limits: RenderLimits,
        bos_token: str = "",
        eos_token: str = "",
        control_spellings: frozenset[str] = frozenset(),
    ) -> "ChatTemplates":
        """Compiles what a model file holds (`ModelFacts.chat_templates`); a plain default where it holds nothing.

        A `tool_use` template that cannot render tools as this API has them is left out: the default takes its place,
        and its capabilities tell whether it shows tools. Raises BrokenTemplate, the message beginning with the
        template's name.
        """
        templates = {}
        for name, source in {"default": DEFAULT_TEMPLATE, **sources}.items():
            if name not in ("default", "tool_use"):
                continue
            try:
                templates[name] = ChatTemplate.compile(
                    source,
                    limits=limits,
                    bos_token=bos_token,
                    eos_token=eos_token,
                    control_spellings=control_spellings,
                )
            except BrokenTemplate as error:
                if name == "tool_use" and isinstance(error, UnusableTemplate):
                    continue
                raise BrokenTemplate(f"chat template {name!r}: {error}") from error
        return cls(templates)

    def select(self, *, has_tools: bool) -> ChatTemplate:
        return self._tool_use if has_tools else self._default


def _probe(compiled: CompiledTemplate, special: Mapping[str, str], limits: RenderLimits) -> TemplateCapabilities:
    """Tries the template out. Raises UnusableTemplate if it failed every time without once refusing on purpose."""
    failures: list[BaseException | None] = []
    num_rendered = 0

    def render(variables: Mapping[str, object]) -> str | None:
        nonlocal num_rendered
        filled = {"tools": None, "documents": None, **special, **deepcopy(dict(variables))}
        try:
            text = compiled.render(filled, date=_PROBE_DATE, budget=RenderBudget(limits))
        except InvalidTemplateInput as error:
            failures.append(error.__cause__ or error)
            return None
        num_rendered += 1
        return text

    capabilities = probe_template(render, compiled.constants, compiled.variables)
    if num_rendered == 0 and not any(isinstance(failure, TemplateRefusal) for failure in failures):
        failure = failures[0]
        raise UnusableTemplate(f"cannot render any conversation: {type(failure).__name__}: {failure}")
    return capabilities


def _check(chat: ChatInput) -> None:
    if not chat.messages:
        raise MissingField("messages must not be empty", param="messages")
    for name in chat.variables:
        if name in RESERVED_VARIABLES or name.startswith("_"):
            raise InvalidValue(
                f"chat_template_kwargs may not set {name[:64]!r}", param=f"chat_template_kwargs.{name[:64]}"
            )
    if not chat.continue_final_message:
        return
    if chat.add_generation_prompt:
        raise InvalidValue(
            "continue_final_message and add_generation_prompt exclude each other", param="continue_final_message"
        )
    if chat.messages[-1].get("role") != "assistant":
        raise InvalidValue(
            "continue_final_message needs a last message from the assistant", param="continue_final_message"
        )


def _mark_end(message: dict[str, object], where: ReasoningField | None) -> None:
    """Puts the end mark behind the message's text, or behind its reasoning where that is all it has.

    Being no white space, it also keeps what a template would trim.
    """
    content = message["content"]
    parts = content if isinstance(content, list) else []
    has_text = any(part.get("text") for part in parts) or (isinstance(content, str) and bool(content))
    if message.get("reasoning_content") and not has_text:
        if where is None:
            raise InvalidTemplateInput(
                "the chat template shows no reasoning of the past, so it cannot be continued",
                param="continue_final_message",
            )
        if where == "part":
            message["content"] = [{**parts[0], "thinking": f"{parts[0]['thinking']}{END_MARK}"}]
        else:
            message[where] = f"{message[where]}{END_MARK}"
    elif isinstance(content, list) and content:
        message["content"] = [*content[:-1], {**content[-1], "text": content[-1]["text"] + END_MARK}]
    elif isinstance(content, list):
        message["content"] = [{"type": "text", "text": END_MARK}]
    else:
        message["content"] = f"{content}{END_MARK}"


def _cut_at_end_mark(text: str) -> str:
    before, mark, _ = text.rpartition(END_MARK)
    if not mark:
        raise InvalidTemplateInput(
            "the chat template leaves out the final message, so it cannot be continued", param="continue_final_message"
        )
    return before.replace(END_MARK, "")
