"""Parts of which a composite grammar is made: text, control tokens, JSON, patterns, and how they follow each other.

A composite says what a model family's own notation looks like, with schemas inside it. A part says what may be
written, never how a backend writes it down. `place` is where the caller gave a schema or pattern, such as
`tools[2].function.parameters`: refusals name it, with the JSON pointer into the schema behind it.
"""

from typing import TypeAlias, Union

import msgspec


class Marker(msgspec.Struct, frozen=True, array_like=True):
    """What free text ends with: `text` as it is spelled, or the control token `token_id` that stands for it."""

    text: str
    token_id: int | None = None


class TextPart(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    """Exactly this text, however it is cut into tokens. Empty: nothing."""

    text: str


class TokenPart(msgspec.Struct, frozen=True, array_like=True, tag="token"):
    """One control token. Never an end token: the end of the output is not written by a grammar."""

    token_id: int


class JsonPart(msgspec.Struct, frozen=True, array_like=True, tag="json"):
    """A JSON value that `schema` (UTF-8 JSON text) allows."""

    schema: bytes
    place: str = ""


class PatternPart(msgspec.Struct, frozen=True, array_like=True, tag="pattern"):
    """Text that a regular expression matches from end to end; as in `RegexSpec`."""

    pattern: str
    place: str = ""


class LarkPart(msgspec.Struct, frozen=True, array_like=True, tag="lark"):
    """A sentence of a Lark grammar, from its rule `start`; as in `LarkSpec`."""

    grammar: str
    place: str = ""


class SeriesPart(msgspec.Struct, frozen=True, array_like=True, tag="series"):
    """One after the other. Empty: nothing is written."""

    parts: tuple["GrammarPart", ...]


class AlternativesPart(msgspec.Struct, frozen=True, array_like=True, tag="alternatives"):
    """One of these; not empty."""

    options: tuple["GrammarPart", ...]


class RepeatPart(msgspec.Struct, frozen=True, array_like=True, tag="repeat"):
    """`part` from `least` to `most` times (None: without a bound), with `separator` between two of them."""

    part: "GrammarPart"
    separator: Union["GrammarPart", None] = None
    least: int = 0
    most: int | None = None


class Trigger(msgspec.Struct, frozen=True, array_like=True):
    """Any of `markers`, and what must follow it."""

    markers: tuple[Marker, ...]
    then: "GrammarPart"


class FreeUntilPart(msgspec.Struct, frozen=True, array_like=True, tag="free_until"):
    """Free text, maybe none, up to the first marker of any trigger; then that marker, and what must follow it."""

    triggers: tuple[Trigger, ...]


class FreePart(msgspec.Struct, frozen=True, array_like=True, tag="free"):
    """Free text, maybe none, in which none of `without` comes. Nothing else may follow it."""

    without: tuple[Marker, ...] = ()


class LiteralValues(msgspec.Struct, frozen=True, array_like=True, tag="literals"):
    """Values as literals. Lists are written in brackets, objects in braces, numbers as in JSON.

    `text_mark` stands around strings, whose text is then raw; empty: strings are written as in JSON, which Python
    reads alike, and keys as strings; otherwise keys are bare.
    """

    text_mark: str = ""
    null: str = "None"
    true: str = "True"
    false: str = "False"


class RawValues(msgspec.Struct, frozen=True, array_like=True, tag="raw"):
    """Strings as raw text up to an end, other values as JSON.

    `end` is written behind each value; a reader takes the first of `ends`, `end` among them, for the value's end, and
    drops `lead` once from the beginning of a value. `text_lead` and `other_lead` stand before a string and before
    any other value.
    """

    end: str
    ends: tuple[str, ...]
    lead: str = ""
    text_lead: str = ""
    other_lead: str = ""


class MembersPart(msgspec.Struct, frozen=True, array_like=True, tag="members"):
    """The members of an object that `schema` (UTF-8 JSON text) allows, in another notation than JSON.

    In the order of the schema: `before_key`, the key, `after_key`, the value; `separator` between two members.
    """

    schema: bytes
    before_key: str
    after_key: str
    separator: str
    values: LiteralValues | RawValues
    place: str = ""


class RulePart(msgspec.Struct, frozen=True, array_like=True, tag="rule"):
    """What the rule of this name in `CompositeSpec.rules` says."""

    name: str


GrammarPart: TypeAlias = (
    TextPart
    | TokenPart
    | JsonPart
    | PatternPart
    | LarkPart
    | SeriesPart
    | AlternativesPart
    | RepeatPart
    | FreeUntilPart
    | FreePart
    | MembersPart
    | RulePart
)


class CompositeSpec(msgspec.Struct, frozen=True, array_like=True, tag="composite"):
    """A grammar made of parts. `rules`: names and the parts they stand for; a rule may name others, and itself."""

    root: GrammarPart
    rules: tuple[tuple[str, GrammarPart], ...] = ()
