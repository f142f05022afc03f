"""The page about tool formats, written from the descriptions."""

from tidegate.parsers.call_layout import layout_of
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_format import (
    BraceCalls,
    CallStyle,
    ChannelCalls,
    JsonCalls,
    NamedJsonCalls,
    PythonCalls,
    TagCalls,
    ToolFormat,
)

_WORKED = """from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tool_format import NamedJsonCalls, ToolFormat
from tidegate.parsers.tool_grammar import GrammarTool, MarkerTokens, tool_grammar
from tidegate.parsers.tool_parser import ToolParser

NARWHAL = ToolFormat(
    name="narwhal",
    models="Narwhal 1",
    style=NamedJsonCalls(name_ends=("<|with|>",)),
    opens=("<|do|>",),
    closes=("<|done|>",),
    example='<|do|>tide_at<|with|>{"port": "Brest"}<|done|>',
)

schema = {"type": "object", "properties": {"port": {"enum": ["Brest", "Roscoff"]}}, "required": ["port"]}
parser = ToolParser(NARWHAL, OfferedTools([("tide_at", schema)]), lambda: "call_1")
events = [*parser.feed(NARWHAL.example), *parser.finish()]

text = b'{"type": "object", "properties": {"port": {"enum": ["Brest", "Roscoff"]}}, "required": ["port"]}'
tool = GrammarTool("tide_at", text, is_strict=True)
grammar = tool_grammar(NARWHAL, [tool], MarkerTokens(lambda marker: None), is_required=True, allows_many=False)"""

_HEAD = f"""# Tool formats

Written from the descriptions in `tidegate/parsers/families.py` by `tidegate.parsers.format_page`; a test keeps it
current.

## What holds for all

- A call of a tool that was not offered is content, byte for byte, and so is an opening that never becomes a call.
  Where the token budget ends the text, such an opening is withheld; so is a marker more than half of which is there.
- A name is complete before its call is emitted. Arguments that the model writes as JSON are passed on in its own
  characters, also where they are not valid. Other notations become JSON as they arrive.
- Text values take the types of the tool's schema: a string stays a string; where the schema allows several types the
  narrower comes first; without a type, what is JSON is JSON; what fits no type is a string.
- A value that a natural end leaves open is closed in notations that become JSON; one cut by the budget is not.
- Blanks before the first call, between calls and after the last one are not content.
- Call ids are minted, unless the format carries ids of its own (`kimi_k2`, and `mistral` with `[CALL_ID]`); an id that
  was used before in the output is replaced. The `tool_call_id` of `command_a` counts from 0 in every turn and is not
  used.
- Reasoning ends at the first closing marker; unclosed it is all reasoning; markup inside it is no call.

## Forced calls

`tool_choice` `required` or a name, `strict` tools, and `parallel_tool_calls: false` become a grammar in the family's
own format (`parsers/tool_grammar.py`), from the same description as its parser. What it says:

- Names, markers, the order of keys and all spacing are those of the family's example. A marker that is one control
  token of the vocabulary is that token; elsewhere it is text, cut into tokens as the model likes.
- A required call has nothing before it but two line breaks at most, and nothing behind it; reasoning comes before. A
  named call is a required one of one tool.
- Otherwise text is free until an opening marker is written, spelled or as its token; a call of an offered tool follows.
  Its arguments are what the schema allows where the tool is strict, any JSON object where it is not. In families that
  mark no calls, an output that begins like a call is one.
- Where only one call may come, the output ends behind it.
- Arguments in JSON are enforced as in `response_format`: [structured output](structured_output.md). In the other
  notations members come in the order of the schema, and others only where it lists none; what a schema says of an
  object is `properties`, `required` and `additionalProperties`.
- In tags a string is raw text that holds no end marker. Patterns, lengths, constants and the formats `date`, `time`,
  `date-time`, `uuid`, `ipv4`, `hostname`, `json-pointer`, `relative-json-pointer` and `uri-template` hold on it. Where
  other types are allowed beside strings, a string never looks like a value of one of them. Other values are JSON
  without an end marker inside.
- In literals, lists take `items` with `minItems` and `maxItems`, or `prefixItems` of one length; unions are `anyOf` and
  exclusive `oneOf`; schemas without null and truth values inside are enforced as JSON, which Python reads alike.
- What cannot be enforced in a notation is refused with its path (`unsupported_schema`), also a required name that
  cannot be written in it. A name that may be absent is left out then.
- A custom tool is a call with one string; its text follows a regular expression or a Lark grammar, or is free. Within
  quotes sentences of the grammar are written with JSON's short escapes; in tags and between marks they are those that
  hold no end marker ([tool calls](tool_calls.md#lark-grammars)).

## Add a family

1. Add a `ToolFormat` to `families.py`: its markers, one of the six styles below, its reasoning markers, an example with
   one call of `tide_at` whose `port` is `Brest`, spaced as the family's template does. A number of the call stands in
   it as `0`, behind a quote or a colon.
2. Add two calls to `tests/harness/forced_texts.py`. The tests of `tests/parsers` and `tests/tool_grammar` take every
   family: at every split, with hostile text made of its markers, and forced, by random walks.
3. Write this page again: `python -m tidegate.parsers.format_page > docs/tool_formats.md`.

No code is needed unless the family writes calls in a style of its own: then a style in `tool_format.py`, its reader,
and its arguments in `call_parts.py`. This is all of a family that does not exist (a test runs it):

```python
{_WORKED}
```

## Styles
"""

_STYLES: tuple[type[CallStyle], ...] = (
    JsonCalls,
    NamedJsonCalls,
    TagCalls,
    PythonCalls,
    BraceCalls,
    ChannelCalls,
)


def write_page() -> str:
    """Returns the page, in Markdown."""
    styles = "\n".join(f"- `{style.__name__}`: {(style.__doc__ or '').strip()}" for style in _STYLES)
    families = "\n".join(map(_section_of, FAMILIES.values()))
    return f"{_HEAD}\n{styles}\n\n## Families\n\n{families}"


def _section_of(form: ToolFormat) -> str:
    facts = [
        ("style", [type(form.style).__name__]),
        ("opens with", form.opens),
        ("without a marker, at the beginning", form.bare_starts),
        ("closes with", form.closes),
        ("section", form.section or ()),
        ("dropped around content", form.dropped),
        ("reasoning between", (*form.reasoning.opens, *form.reasoning.closes) if form.reasoning else ()),
    ]
    lines = [f"- {title}: {', '.join(map(_code, values))}" for title, values in facts if values]
    lines.append(f"- several calls: {_several(form)}")
    return f"### {form.name}\n\n{form.models}.\n\n" + "\n".join(lines) + f"\n\n```text\n{form.example}\n```\n"


def _several(form: ToolFormat) -> str:
    layout = layout_of(form)
    if isinstance(form.style, ChannelCalls):
        return "one message each, unless the end marker ends the output"
    if layout.separator:
        return f"in one list, {_code(layout.separator)} between them"
    if isinstance(form.style, JsonCalls) and not layout.opening:
        between = f"{form.style.separator} " if form.style.separator else ", "
        return f"{_code(between)} between them" + ("" if form.style.separator else ", in a list")
    return "one block each, all in one section" if layout.section_open else "one block each"


def _code(value: str) -> str:
    shown = value.replace("\n", "\\n")
    return f"`{shown}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(write_page())
