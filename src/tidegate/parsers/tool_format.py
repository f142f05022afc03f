"""How a model family writes tool calls and reasoning, as data: what parsers, grammars and pages come from.

A family is a `ToolFormat`: the markers around its calls, the way a call is written (one of six), and its reasoning
markers. Adding a family is adding one to `families`. Nothing here reads text.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """A call is a JSON object with a name and arguments, in any order; or a JSON list of such objects."""

    name_keys: tuple[str, ...] = ("name",)
    arguments_keys: tuple[str, ...] = ("arguments", "parameters")
    separator: str = ""
    """Between objects that stand in no list."""
    needs_arguments: bool = False
    """Without an object of arguments it is no call: for formats whose calls look like any JSON."""


@dataclass(frozen=True, slots=True)
class NamedJsonCalls:
    """A call is a name, a marker, and the arguments as a JSON object."""

    name_ends: tuple[str, ...]
    """Markers after the name. One that is "{" is already part of the arguments."""
    lead: str = ""
    """Text before the name."""
    name_prefix: str = ""
    """Written before a name and not part of it, where the model writes it."""
    has_index: bool = False
    """The name ends with `:` and the number of the call; the whole is the call's id, in the format's own words."""
    id_mark: str = ""
    """A marker after the name, before the call's id; one of `name_ends` follows."""
    tail: str = ""
    """Text after the arguments, where the model writes it."""
    list_form: JsonCalls | None = None
    """The older form of the family, when a JSON list follows the opening marker."""


@dataclass(frozen=True, slots=True)
class TagCalls:
    """A call is a name and parameters in tags; values are plain text, whose types the tool's schema says."""

    param_open: str
    key_end: str
    value_ends: tuple[str, ...]
    lead: str = ""
    """Text before the name's tag, where the model writes it."""
    name_open: str = ""
    """Empty: the name follows the opening marker as it is."""
    name_end: str = ""
    call_end: str = ""
    value_open: str = ""
    """Between the key and the value, blanks allowed before it."""
    value_lead: str = ""
    """Dropped once before a value, where the model writes it."""
    type_end: str = ""
    """Where the tag says itself whether the value is a string: `true` or `false` between `key_end` and this."""


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """A call is a Python call with keyword arguments whose values are literals."""

    in_brackets: bool = True
    """A list of calls; otherwise one call a line."""


@dataclass(frozen=True, slots=True)
class BraceCalls:
    """A call is `lead`, a name, and `{key:value,...}` with bare keys; strings stand between `quote` marks."""

    lead: str
    quote: str


@dataclass(frozen=True, slots=True)
class ChannelCalls:
    """Everything is a message with a header; a message to a recipient is a call, other channels have a meaning."""

    start: str
    channel: str
    message: str
    ends: tuple[str, ...]
    recipient: str
    """Before a tool's name in the header."""
    reasoning_channel: str
    answer_channel: str = "final"
    role: str = "assistant"
    """Between `start` and the channel of the model's next message."""


CallStyle: TypeAlias = JsonCalls | NamedJsonCalls | TagCalls | PythonCalls | BraceCalls | ChannelCalls


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """What encloses reasoning. `is_open`: the family's templates usually put the opening marker into the prompt."""

    opens: tuple[str, ...]
    closes: tuple[str, ...]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A model family. `models` is for people.

    `example` is an output with one call of `tide_at`, whose `port` is `Brest`, as the family's own template writes it.
    The grammar that forces calls takes all spacing from it, and a lone `0` behind a quote or colon as a call's number.
    """

    name: str
    models: str
    style: CallStyle
    example: str
    opens: tuple[str, ...] = ()
    """Markers, each of which begins a call or a list of calls."""
    closes: tuple[str, ...] = ()
    """Markers that end one; they may be missing."""
    section: tuple[str, str] | None = None
    """Markers around all calls, outside `opens` and `closes`."""
    bare_starts: str = ""
    """Characters that begin calls without a marker, at the very beginning of the output only."""
    dropped: tuple[str, ...] = ()
    """Markers around content that are not shown."""
    reasoning: ReasoningMarkers | None = None
