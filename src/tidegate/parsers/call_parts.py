"""One call as grammar parts, in each of the styles: a name, and arguments in the style's notation.

The alternatives over all tools, and each tool's arguments, are rules of the grammar, so that they are said once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.inference.grammar_parts import (
    AlternativesPart,
    GrammarPart,
    JsonPart,
    LarkPart,
    LiteralValues,
    MembersPart,
    PatternPart,
    RawValues,
    RepeatPart,
    RulePart,
    SeriesPart,
    StringPart,
    TextPart,
)
from tidegate.parsers.call_layout import layout_of, tag_layout_of
from tidegate.parsers.json_text import quote
from tidegate.parsers.marker_tokens import MarkerTokens
from tidegate.parsers.tool_format import BraceCalls, JsonCalls, NamedJsonCalls, PythonCalls, TagCalls, ToolFormat

_NUMBER = re.compile(r'(?<=[":])0(?=["<])')
_ANY_OBJECT = b'{"type": "object"}'
_ANY_TEXT = PatternPart("(?s:.*)")
_CALL_ID = "[a-zA-Z0-9]{9}"


@dataclass(frozen=True, slots=True)
class GrammarTool:
    """An offered tool. `schema`: the JSON Schema of its arguments as UTF-8 text, None where it says nothing.

    `text`: the tool is a custom one, whose only argument is the string `text_key`; what it must look like is a
    pattern, a Lark grammar, or anything (an empty pattern part). `place`: where the request gave the schema or the
    grammar, for refusals, such as `tools[2].function.parameters`.
    """

    name: str
    schema: bytes | None = None
    is_strict: bool = False
    place: str = ""
    text: PatternPart | LarkPart | None = None
    text_key: str = "input"


class CallParts:
    """Calls of one family's form. `rules` grows with what is asked for."""

    def __init__(
        self, form: ToolFormat, tools: Sequence[GrammarTool], tokens: MarkerTokens, *, is_required: bool
    ) -> None:
        self._form = form
        self._layout = layout_of(form)
        self._tools = tools
        self._tokens = tokens
        self._is_required = is_required
        self.rules: dict[str, GrammarPart] = {}

    def call(self, *, is_first: bool) -> GrammarPart:
        """Returns a call of any of the tools, without opening and closing markers."""
        layout = self._layout
        is_numbered = _NUMBER.search(layout.head + layout.middle) is not None
        name = "call" if is_first or not is_numbered else "next call"
        if name not in self.rules:
            calls = tuple(self._call_of(number, is_first=is_first) for number in range(len(self._tools)))
            self.rules[name] = AlternativesPart(calls)
        return RulePart(name)

    def json_call(self, style: JsonCalls) -> GrammarPart:
        """Returns a call as a JSON object of `style`, whatever the form's own style is."""
        name, arguments = style.name_keys[0], style.arguments_keys[0]
        calls = [
            SeriesPart((
                TextPart(f'{{"{name}": "{tool.name}", "{arguments}": '), self._arguments(number), TextPart("}")
            ))
            for number, tool in enumerate(self._tools)
        ]  # fmt: skip
        self.rules.setdefault("json call", AlternativesPart(tuple(calls)))
        return RulePart("json call")

    def _call_of(self, number: int, *, is_first: bool) -> GrammarPart:
        layout, tool = self._layout, self._tools[number]
        middle = self._numbered(layout.middle, is_first=is_first)
        style = self._form.style
        if isinstance(style, NamedJsonCalls) and style.id_mark and self._tokens.id_of(style.id_mark) is not None:
            with_id = SeriesPart((*self._tokens.written(style.id_mark), PatternPart(_CALL_ID)))
            middle = (RepeatPart(with_id, most=1), *middle)
        head = self._numbered(layout.head, is_first=is_first)
        return SeriesPart((
            *head, TextPart(tool.name), *middle, self._arguments(number), *self._tokens.written(layout.tail)
        ))  # fmt: skip

    def _numbered(self, text: str, *, is_first: bool) -> tuple[GrammarPart, ...]:
        found = _NUMBER.search(text)
        if found is None or is_first:
            return self._tokens.written(text)
        before, behind = self._tokens.written(text[: found.start()]), self._tokens.written(text[found.end() :])
        return (*before, PatternPart("[1-9][0-9]{0,2}"), *behind)

    def _arguments(self, number: int) -> GrammarPart:
        """Returns the rule of one tool's arguments."""
        name = f"arguments {number}"
        if name not in self.rules:
            tool = self._tools[number]
            self.rules[name] = self._text_arguments(tool) if tool.text is not None else self._schema_arguments(tool)
        return RulePart(name)

    def _schema_arguments(self, tool: GrammarTool) -> GrammarPart:
        is_said = tool.schema is not None and (tool.is_strict or self._is_required)
        schema = tool.schema if tool.schema is not None and is_said else _ANY_OBJECT
        style, say = self._form.style, self._tokens.written
        match style:
            case PythonCalls():
                return MembersPart(schema, (), say("="), say(", "), LiteralValues(), tool.place)
            case BraceCalls():
                return MembersPart(schema, (), say(":"), say(","), self._brace_values(style), tool.place)
            case TagCalls():
                layout, _ = tag_layout_of(self._form, style)
                before, after = say(layout.before_key), say(layout.after_key)
                return MembersPart(schema, before, after, (), self._raw_values(style), tool.place)
        return JsonPart(schema, tool.place, is_object=True)

    def _text_arguments(self, tool: GrammarTool) -> GrammarPart:
        text = _ANY_TEXT if tool.text is None or tool.text == PatternPart("") else tool.text
        style, say = self._form.style, self._tokens.written
        match style:
            case PythonCalls():
                return SeriesPart((TextPart(f"{tool.text_key}="), StringPart(text, LiteralValues())))
            case BraceCalls():
                return SeriesPart((TextPart(f"{tool.text_key}:"), StringPart(text, self._brace_values(style))))
            case TagCalls():
                layout, _ = tag_layout_of(self._form, style)
                key = (*say(layout.before_key), TextPart(tool.text_key), *say(layout.after_key))
                return SeriesPart((*key, StringPart(text, self._raw_values(style))))
        return SeriesPart((TextPart(f"{{{quote(tool.text_key)}: "), StringPart(text), TextPart("}")))

    def _brace_values(self, style: BraceCalls) -> LiteralValues:
        return LiteralValues(self._tokens.marker(style.quote), "null", "true", "false", ",", ":")

    def _raw_values(self, style: TagCalls) -> RawValues:
        layout, _ = tag_layout_of(self._form, style)
        lead = "" if layout.after_key.endswith(style.value_lead) else style.value_lead
        end = self._tokens.written(layout.end)
        return RawValues(end, style.value_ends, lead, layout.text_lead, layout.other_lead)
