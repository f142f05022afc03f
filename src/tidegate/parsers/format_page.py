"""The page about tool formats, written from the descriptions."""

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

_HEAD = """# Tool formats

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

## Add a family

1. Add a `ToolFormat` to `families.py`: its markers, one of the six styles below, its reasoning markers, an example with
   one call of `tide_at` whose `port` is `Brest`.
2. Run the tests of `tests/parsers`: they take every family at every split of its example, of hostile texts made of its
   markers, and of a megabyte of its openings.
3. Write this page again: `python -m tidegate.parsers.format_page > docs/tool_formats.md`.

No code is needed unless the family writes calls in a style of its own: then a style in `tool_format.py` and its reader.

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
    return f"### {form.name}\n\n{form.models}.\n\n" + "\n".join(lines) + f"\n\n```text\n{form.example}\n```\n"


def _code(value: str) -> str:
    shown = value.replace("\n", "\\n")
    return f"`{shown}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(write_page())
