"""The grammar that makes a model write calls in its own family's format, from the family's description.

Decides what of the output is fixed: markers, names, the order of keys, the notation of values. Arguments follow the
tool's schema where the tool is strict or a call is required; otherwise they are any JSON object. Does not know tokens
beyond the markers' own, nor how a grammar is compiled: what a schema says that cannot be kept is refused there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.inference.grammar_parts import CompositeSpec, LarkPart, PatternPart
from tidegate.parsers.tool_format import ToolFormat


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


@dataclass(frozen=True, slots=True)
class MarkerTokens:
    """What a vocabulary knows of markers. `id_of`: the control token that a text is, None where it is plain text.

    `end_ids`: control tokens that end the output; a marker that is one of them is left to the end.
    """

    id_of: Callable[[str], int | None]
    end_ids: frozenset[int] = frozenset()


def tool_grammar(
    form: ToolFormat, tools: Sequence[GrammarTool], tokens: MarkerTokens, *, is_required: bool, allows_many: bool
) -> CompositeSpec | None:
    """Returns what the output of a choice must look like, None where nothing has to be forced.

    `is_required`: at least one call and nothing else, reasoning aside; with one tool this is a named call. Otherwise
    free text, in which an opening marker, once written, is followed by a call of an offered tool. `allows_many`: more
    than one call may come.
    """
    raise NotImplementedError
