"""What the output shall look like: the source of a grammar, before anything has compiled it.

Both halves know these: the server's half checks and compiles one before a request is admitted, the engine's half
compiles it again into the machine that masks. Schemas stay JSON text, as the caller sent it: the order of properties
is the order of generation.
"""

import msgspec

from tidegate.inference.grammar_parts import CompositeSpec


class JsonSchemaSpec(msgspec.Struct, frozen=True, array_like=True, tag="json_schema"):
    """One JSON value that a schema allows. `schema` is UTF-8 JSON text."""

    schema: bytes


class JsonObjectSpec(msgspec.Struct, frozen=True, array_like=True, tag="json_object"):
    """Any JSON object."""


class RegexSpec(msgspec.Struct, frozen=True, array_like=True, tag="regex"):
    """Text that a regular expression matches from end to end. Without look-around and back references."""

    pattern: str


class ChoiceSpec(msgspec.Struct, frozen=True, array_like=True, tag="choice"):
    """One of these texts."""

    choices: tuple[str, ...]


class LarkSpec(msgspec.Struct, frozen=True, array_like=True, tag="lark"):
    """A sentence of a Lark grammar, from its rule `start`."""

    grammar: str


class StructuralTag(msgspec.Struct, frozen=True, array_like=True):
    """`begin`, then JSON that `schema` (UTF-8 JSON text) allows, then `end`."""

    begin: str
    schema: bytes
    end: str


class StructuralTagSpec(msgspec.Struct, frozen=True, array_like=True, tag="structural_tag"):
    """Free text, in which each of `triggers`, once written, must grow into one of `tags` that begins with it."""

    tags: tuple[StructuralTag, ...]
    triggers: tuple[str, ...]


GrammarSpec = JsonSchemaSpec | JsonObjectSpec | RegexSpec | ChoiceSpec | LarkSpec | StructuralTagSpec | CompositeSpec


class GrammarRule(msgspec.Struct, frozen=True, array_like=True):
    """A request's constraint, and where in the output it begins.

    `starts_after`: token sequences; the constraint holds for what follows the first of them that has been generated,
    and until then no end token may come. Empty: it holds from the first token.
    """

    spec: GrammarSpec
    starts_after: tuple[tuple[int, ...], ...] = ()
