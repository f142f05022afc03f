"""The grammar that makes a model write calls in its own family's format, from the family's description.

Decides what of the output is fixed: markers, names, the order of keys, the notation of values. Arguments follow the
tool's schema where the tool is strict or a call is required; otherwise they are any JSON object. Does not know tokens
beyond the markers' own, nor how a grammar is compiled: what a schema says that cannot be kept is refused there.
"""

from collections.abc import Callable, Sequence

from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    FreePart,
    FreeUntilPart,
    GrammarPart,
    Marker,
    RepeatPart,
    RulePart,
    SeriesPart,
    TextPart,
    TokenPart,
    Trigger,
)
from tidegate.parsers.call_layout import layout_of
from tidegate.parsers.call_parts import CallParts, GrammarTool
from tidegate.parsers.channel_grammar import ChannelGrammar
from tidegate.parsers.marker_tokens import MarkerTokens
from tidegate.parsers.tool_format import ChannelCalls, JsonCalls, NamedJsonCalls, ToolFormat

__all__ = ["GrammarTool", "MarkerTokens", "tool_grammar"]


def tool_grammar(
    form: ToolFormat, tools: Sequence[GrammarTool], tokens: MarkerTokens, *, is_required: bool, allows_many: bool
) -> CompositeSpec | None:
    """Returns what the output of a choice must look like, None where nothing has to be forced.

    `is_required`: at least one call and nothing else, reasoning aside; with one tool this is a named call. Otherwise
    free text, in which an opening marker, once written, is followed by a call of an offered tool. `allows_many`: more
    than one call may come.
    """
    if not tools or not (is_required or not allows_many or any(tool.is_strict or tool.text for tool in tools)):
        return None
    calls = CallParts(form, tools, tokens, is_required=is_required)
    if isinstance(form.style, ChannelCalls):
        root = ChannelGrammar(form.style, calls, tokens, allows_many=allows_many).root(is_required=is_required)
    else:
        blocks = _Blocks(form, calls, tokens, allows_many=allows_many)
        root = blocks.required() if is_required else blocks.free()
    return CompositeSpec(root, tuple(calls.rules.items()))


class _Blocks:
    """Outputs of families that mark their calls, or begin with them."""

    def __init__(self, form: ToolFormat, calls: CallParts, tokens: MarkerTokens, *, allows_many: bool) -> None:
        self._form = form
        self._layout = layout_of(form)
        self._calls = calls
        self._tokens = tokens
        self._allows_many = allows_many

    def required(self) -> GrammarPart:
        """Returns calls and nothing else; line breaks before them belong to the markup."""
        layout = self._layout
        if layout.section_open:
            calls: tuple[GrammarPart, ...] = (*self._say(layout.section_open), self._rest_of_section())
        elif layout.opening:
            calls = (self._opened_blocks(),)
        else:
            calls = (self._bare(),)
        return SeriesPart((_line_breaks(2), *calls))

    def free(self) -> GrammarPart:
        """Returns free text in which every opening marker is followed by a call."""
        form = self._form
        rules = self._calls.rules
        markers = tuple(Marker(text, self._tokens.id_of(text)) for text in self._openings())
        free = FreePart(markers)
        if not markers:
            rules["text"] = free
        else:
            rules["text"] = AlternativesPart((free, FreeUntilPart(self._triggers())))
        if not form.bare_starts:
            return RulePart("text")
        begun: list[GrammarPart] = [self._bare(), FreePart(markers, form.bare_starts)]
        if markers:
            begun.append(FreeUntilPart(self._triggers(), form.bare_starts))
        return AlternativesPart(tuple(begun))

    def _openings(self) -> tuple[str, ...]:
        return (*self._form.opens, *(self._form.section or ())[:1])

    def _triggers(self) -> tuple[Trigger, ...]:
        form, layout = self._form, self._layout
        after: GrammarPart = RulePart("text") if self._allows_many else TextPart("")
        found = []
        for marker in form.opens:
            found += self._tokens.triggers(marker, SeriesPart((self._block(is_first=True), after)))
        if form.section is not None:
            gap = self._say(layout.section_open[len(form.section[0]) :])
            section = SeriesPart((*gap, self._rest_of_section(), after))
            found += self._tokens.triggers(form.section[0], section)
        # Control tokens around content would otherwise never come.
        ids = [self._tokens.id_of(text) for text in form.dropped]
        found += [Trigger((Marker("", i),), RulePart("text")) for i in ids if i is not None]
        return tuple(found)

    def _rest_of_section(self) -> GrammarPart:
        return SeriesPart((self._opened_blocks(), *self._say(self._layout.section_close)))

    def _opened_blocks(self) -> GrammarPart:
        """Returns blocks with their opening markers; a block that is a list holds all calls."""
        layout = self._layout

        def opened(is_first: bool) -> GrammarPart:
            return SeriesPart((*self._say(layout.opening), self._block(is_first=is_first)))

        return opened(True) if layout.separator else self._some(opened, (_line_breaks(1),))

    def _block(self, *, is_first: bool) -> GrammarPart:
        """Returns what follows an opening marker, closing marker included."""
        layout = self._layout
        inner = self._list() if layout.separator else self._calls.call(is_first=is_first)
        style = self._form.style
        if isinstance(style, NamedJsonCalls) and style.list_form is not None and self._may_be_old(style):
            inner = AlternativesPart((inner, self._old_list(style.list_form)))
        return SeriesPart((inner, *self._say(layout.closing)))

    def _may_be_old(self, style: NamedJsonCalls) -> bool:
        """Whether the vocabulary may be one of the older models: it has no control token behind names."""
        return all(self._tokens.id_of(mark) is None for mark in style.name_ends)

    def _old_list(self, style: JsonCalls) -> GrammarPart:
        calls = self._some(lambda _: self._calls.json_call(style), (TextPart(", "),))
        return SeriesPart((RepeatPart(TextPart(" "), most=1), TextPart("["), calls, TextPart("]")))

    def _list(self) -> GrammarPart:
        layout = self._layout
        calls = self._some(lambda is_first: self._calls.call(is_first=is_first), self._say(layout.separator))
        return SeriesPart((*self._say(layout.list_open), calls, *self._say(layout.list_close)))

    def _bare(self) -> GrammarPart:
        """Returns calls that no marker opens."""
        style = self._form.style
        if self._layout.separator or not isinstance(style, JsonCalls):
            return self._block(is_first=True)
        call = self._calls.call(is_first=True)
        if style.separator:
            return self._some(lambda _: call, (TextPart(f"{style.separator} "),))
        if "[" not in self._form.bare_starts or not self._allows_many:
            return call
        listed = SeriesPart((TextPart("["), self._some(lambda _: call, (TextPart(", "),)), TextPart("]")))
        return AlternativesPart((call, listed))

    def _some(self, make: Callable[[bool], GrammarPart], separator: tuple[GrammarPart, ...]) -> GrammarPart:
        """Returns one call or more, as may be; `make` is told whether it is the first one."""
        first = make(True)
        if not self._allows_many:
            return first
        return SeriesPart((first, RepeatPart(SeriesPart((*separator, make(False))))))

    def _say(self, text: str) -> tuple[TextPart | TokenPart, ...]:
        return self._tokens.written(text)


def _line_breaks(most: int) -> RepeatPart:
    return RepeatPart(TextPart("\n"), most=most)
