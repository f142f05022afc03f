"""Parts of which a composite grammar is made: text, control tokens, JSON, patterns, and how they follow each other.

A composite says what a model family's own notation looks like, with schemas inside it. A part says what may be
written, never how a backend writes it down. `place` is where the caller gave a schema or pattern, such as
`tools[2].function.parameters`: refusals name it, with the JSON pointer into the schema behind it.
"""

from typing import TypeAlias, Union

import msgspec


class Marker(msgspec.Struct, frozen=True, array_like=True):
    """What text ends with: `text` as it is spelled, or the control token `token_id` that stands for it.

    An empty `text` is never spelled: only the token counts.
    """

    text: str
    token_id: int | None = None


class TextPart(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    """Exactly this text, however it is cut into tokens. Empty: nothing."""

    text: str


class TokenPart(msgspec.Struct, frozen=True, array_like=True, tag="token"):
    """One control token. Never an end token: the end of the output is not written by a grammar."""

    token_id: int


Written: TypeAlias = tuple[TextPart | TokenPart, ...]
"""Fixed text and control tokens, one after the other."""


class JsonPart(msgspec.Struct, frozen=True, array_like=True, tag="json"):
    """A JSON value that `schema` (UTF-8 JSON text) allows. `is_object`: an object, whatever else the schema allows."""

    schema: bytes
    place: str = ""
    is_object: bool = False


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
    """Free text, maybe none, up to the first marker of any trigger; then that marker, and what must follow it.

    `no_start`: characters that the text does not begin with, blanks aside. `without`: texts that do not come in it.
    """

    triggers: tuple[Trigger, ...]
    no_start: str = ""
    without: tuple[str, ...] = ()


class FreePart(msgspec.Struct, frozen=True, array_like=True, tag="free"):
    """Free text, maybe none, in which none of `without` comes. Nothing else may follow it.

    `no_start`: characters that the text does not begin with, blanks aside.
    """

    without: tuple[Marker, ...] = ()
    no_start: str = ""


class LiteralValues(msgspec.Struct, frozen=True, array_like=True, tag="literals"):
    """Values as literals: lists in brackets, objects in braces, numbers as in JSON, words of the notation's own.

    `text_mark` stands around strings, whose text is then raw, and keys are bare; None: strings and keys are written as
    JSON strings, which Python reads alike.
    """

    text_mark: Marker | None = None
    null: str = "None"
    true: str = "True"
    false: str = "False"
    separator: str = ", "
    colon: str = ": "


class RawValues(msgspec.Struct, frozen=True, array_like=True, tag="raw"):
    """Strings as raw text up to an end, other values as JSON.

    `end` is written behind each value. A reader takes the first text of `ends` for the value's end, so none of them
    comes in a value; and it drops `lead` once from the beginning of a value. `text_lead` and `other_lead` say which
    kind of value follows; where they are empty, a string must not look like a value of another type that is allowed.
    """

    end: Written
    ends: tuple[str, ...]
    lead: str = ""
    text_lead: str = ""
    other_lead: str = ""


class MembersPart(msgspec.Struct, frozen=True, array_like=True, tag="members"):
    """The members of an object that `schema` (UTF-8 JSON text) allows, in another notation than JSON.

    In the order of the schema: `before_key`, the key, `after_key`, the value; `separator` between two members. Members
    that the schema does not list are written only where it lists none.
    """

    schema: bytes
    before_key: Written
    after_key: Written
    separator: Written
    values: LiteralValues | RawValues
    place: str = ""


class StringPart(msgspec.Struct, frozen=True, array_like=True, tag="string"):
    """A string whose text is `text`, in the notation of `values`, or in JSON where that is None."""

    text: PatternPart | LarkPart
    values: LiteralValues | RawValues | None = None


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
    | StringPart
    | RulePart
)


class CompositeSpec(msgspec.Struct, frozen=True, array_like=True, tag="composite"):
    """A grammar made of parts. `rules`: names and the parts they stand for; a rule may name others, and itself."""

    root: GrammarPart
    rules: tuple[tuple[str, GrammarPart], ...] = ()
