"""Composite specs as Lark text: parts to rules, free text and strings to lexemes.

Free text ends where the first of its markers is complete, and the lexemes say so themselves: none holds a marker but at
its end. So it never matters which of two lexemes is the longer. Fixed text is spelled by characters (`lark_text`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidegate.errors import LimitFact
from tidegate.grammar.composite.literal_members import LiteralMembers, bare_key, member_chain
from tidegate.grammar.composite.notation_schema import Member, NotationSchema
from tidegate.grammar.composite.raw_members import RawMembers
from tidegate.grammar.json_text import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, read_schema
from tidegate.grammar.lark.embedded_lark import check_embedded, escaped_sentence
from tidegate.grammar.lark.lark_text import (
    ANYTHING,
    NOTHING,
    SOMETHING,
    LarkText,
    WrittenGrammar,
    any_of,
    ended,
    json_rule,
    regex,
    spell,
    without,
)
from tidegate.grammar.refusal import Refused, invalid, too_complex
from tidegate.grammar.schema.counted_lengths import pattern_lengths, require_countable
from tidegate.grammar.schema.lowered_bounds import check_beside
from tidegate.grammar.schema.lowering import lower_schema
from tidegate.grammar.schema.negation import NATIVE_PATTERN
from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    FreePart,
    FreeUntilPart,
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
    TokenPart,
    Trigger,
    Written,
)

MAX_REPEATS = 1000
"""The largest number of repetitions that a part may ask for."""


def composite_grammar(spec: CompositeSpec, control_ids: frozenset[int]) -> WrittenGrammar:
    """Returns the grammar. `control_ids`: the tokens that parts may write; end tokens are none of them.

    Raises Refused; paths begin with the place of a schema.
    """
    return _Writer(spec, control_ids).write()


class _Writer:
    def __init__(self, spec: CompositeSpec, control_ids: frozenset[int]) -> None:
        self._spec = spec
        self._control_ids = control_ids
        self._text = LarkText()
        self._depth = 0
        self._num_bytes = 0
        self._rules = {name: self._text.reserve() for name, _ in spec.rules}
        if len(self._rules) < len(spec.rules):
            raise invalid("two rules of a grammar have one name")

    def write(self) -> WrittenGrammar:
        start = self._part(self._spec.root)
        for name, part in self._spec.rules:
            self._text.define(self._rules[name], self._part(part))
        return self._text.write(start)

    def _part(self, part: GrammarPart) -> str:
        """Returns an expression that may stand in a series."""
        self._depth += 1
        if self._depth > MAX_SCHEMA_DEPTH:
            limit = LimitFact("schema_depth", MAX_SCHEMA_DEPTH, self._depth)
            raise too_complex("the grammar is nested too deeply", limit)
        found = self._SAY[type(part)](self, part)
        self._depth -= 1
        return found

    def _fixed(self, part: TextPart) -> str:
        self._count(len(part.text))
        return spell(part.text)

    def _token(self, part: TokenPart) -> str:
        if part.token_id not in self._control_ids:
            raise invalid("a grammar writes control tokens of the vocabulary, and no end token")
        return f"<[{part.token_id}]>"

    def _written(self, parts: Written) -> str:
        return " ".join(self._part(part) for part in parts)

    def _json(self, part: JsonPart) -> str:
        self._count(len(part.schema))
        with _at(self._text, part.place):
            lowered = lower_schema(read_schema(part.schema))
            if part.is_object and lowered.get("type") != "object":
                definitions = {"$defs": lowered.pop("$defs")} if "$defs" in lowered else {}
                lowered = {**definitions, "allOf": [lowered, {"type": "object"}]}
        return self._text.rule(json_rule(lowered))

    def _pattern(self, part: PatternPart) -> str:
        self._count(len(part.pattern))
        require_countable(pattern_lengths(part.pattern))
        return self._text.terminal(regex(part.pattern))

    def _lark(self, part: LarkPart) -> str:
        self._count(len(part.grammar))
        with _at(self._text, part.place):
            check_embedded(part.grammar)
        return self._text.rule(f"%lark {{\n{part.grammar}\n}}")

    def _series(self, part: SeriesPart) -> str:
        return " ".join(self._part(inner) for inner in part.parts) or NOTHING

    def _alternatives(self, part: AlternativesPart) -> str:
        if not part.options:
            raise invalid("alternatives of a grammar are not empty")
        written = [self._part(option) for option in part.options]
        for values in _alike(part.options):
            with _at(self._text, values[-1].place):
                check_beside(lower_schema(read_schema(value.schema)) for value in values)
        return self._text.rule(" | ".join(written))

    def _repeat(self, part: RepeatPart) -> str:
        least, most = part.least, part.most
        if not 0 <= least <= MAX_REPEATS or (most is not None and not max(1, least) <= most <= MAX_REPEATS):
            raise invalid("a grammar repeats a part too often, or never")
        one = self._text.rule(self._part(part.part))
        further = one if part.separator is None else f"({self._part(part.separator)} {one})"
        bounds = f"{{{max(0, least - 1)},{'' if most is None else most - 1}}}"
        repeated = one if most == 1 else f"{one} {further}{bounds}"
        return self._text.rule(f"{repeated} | {NOTHING}" if least == 0 else repeated)

    def _free_until(self, part: FreeUntilPart) -> str:
        texts = tuple(marker.text for trigger in part.triggers for marker in trigger.markers if marker.text)
        if not part.triggers or not all(trigger.markers for trigger in part.triggers):
            raise invalid("free text ends with one marker at least")
        texts += tuple(text for text in part.without if text and text not in texts)
        options = [option for trigger in part.triggers for option in self._triggered(trigger, texts, part.no_start)]
        return self._text.rule(" | ".join(options))

    def _triggered(self, trigger: Trigger, texts: tuple[str, ...], no_start: str) -> list[str]:
        then = self._text.rule(self._part(trigger.then))
        options = []
        for marker in trigger.markers:
            if marker.text:
                lexeme = ended(_begun(ANYTHING, no_start), marker.text, texts)
                options.append(f"{self._text.terminal(lexeme)} {then}")
            if marker.token_id is not None:
                free = self._text.terminal(_begun(SOMETHING, no_start) + without(texts))
                token = self._token(TokenPart(marker.token_id))
                options += [f"{free} {token} {then}", f"{token} {then}"]
        return options

    def _free(self, part: FreePart) -> str:
        texts = tuple(marker.text for marker in part.without if marker.text)
        return self._text.terminal(_begun(ANYTHING, part.no_start) + without(texts))

    def _members(self, part: MembersPart) -> str:
        self._count(len(part.schema))
        with _at(self._text, part.place):
            schema = NotationSchema(part.schema)
            values = self._values(schema, part.values)
            rules = schema.object_rules(schema.root, "")
            before, after, separator = map(self._written, (part.before_key, part.after_key, part.separator))

            def written(member: Member) -> tuple[str, bool] | None:
                key = bare_key(member, values.key_pattern)
                if key is None:
                    return None
                value = values.value(member.schema, member.path)
                return f"{before} {key} {after} {value}", member.is_required

            chain = member_chain(self._text, [written(member) for member in rules.members], separator)
            if chain is None and rules.further is not False:
                key = self._text.terminal(f"/{values.further_keys}/")
                one = self._text.rule(f"{before} {key} {after} {values.value(rules.further, rules.further_path)}")
                chain = self._text.rule(f"({one} ({separator} {one})*)?")
            return chain or NOTHING

    def _string(self, part: StringPart) -> str:
        inner = part.text
        if isinstance(inner, LarkPart):
            return self._lark_string(inner, part.values)
        self._count(len(inner.pattern))
        with _at(self._text, inner.place):
            if part.values is None or (isinstance(part.values, LiteralValues) and part.values.text_mark is None):
                return self._text.rule(json_rule(lower_schema(_string_schema(inner.pattern))))
            return self._values(NotationSchema(b"true"), part.values).string(regex(inner.pattern))

    def _lark_string(self, inner: LarkPart, values: LiteralValues | RawValues | None) -> str:
        self._count(len(inner.grammar))
        with _at(self._text, inner.place):
            if values is None or (isinstance(values, LiteralValues) and values.text_mark is None):
                return escaped_sentence(self._text, inner.grammar)
            return self._values(NotationSchema(b"true"), values).sentence(inner.grammar)

    def _values(self, schema: NotationSchema, values: LiteralValues | RawValues) -> LiteralMembers | RawMembers:
        if isinstance(values, RawValues):
            return RawMembers(self._text, schema, values, self._written)
        return LiteralMembers(self._text, schema, values, self._written)

    def _rule(self, part: RulePart) -> str:
        if part.name not in self._rules:
            raise invalid("a grammar names a rule that is not there")
        return self._rules[part.name]

    def _count(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        if self._num_bytes > MAX_SCHEMA_BYTES:
            limit = LimitFact("schema_bytes", MAX_SCHEMA_BYTES, self._num_bytes)
            raise too_complex("the grammar is too large", limit)

    _SAY: dict[type, Callable[..., str]] = {  # noqa: RUF012 - a table, never changed
        TextPart: _fixed,
        TokenPart: _token,
        JsonPart: _json,
        PatternPart: _pattern,
        LarkPart: _lark,
        SeriesPart: _series,
        AlternativesPart: _alternatives,
        RepeatPart: _repeat,
        FreeUntilPart: _free_until,
        FreePart: _free,
        MembersPart: _members,
        StringPart: _string,
        RulePart: _rule,
    }


def _alike(options: tuple[GrammarPart, ...]) -> list[list[JsonPart]]:
    """Returns the JSON values that begin behind the same text, so that they are read at one place."""
    found: dict[str, list[JsonPart]] = {}
    for option in options:
        match option:
            case SeriesPart(parts=(TextPart(text=text), JsonPart() as value, *_)):
                found.setdefault(text, []).append(value)
            case (JsonPart() as value) | SeriesPart(parts=(JsonPart() as value, *_)):
                found.setdefault("", []).append(value)
    return [values for values in found.values() if len(values) > 1]


def _begun(lexeme: str, no_start: str) -> str:
    return f"{lexeme} & ~/[ \\t\\r\\n]*{any_of(tuple(no_start))}(?s:.*)/" if no_start else lexeme


def _string_schema(pattern: str) -> dict[object, str]:
    return {"type": "string", NATIVE_PATTERN: f"^(?:{pattern})$"}


@contextmanager
def _at(text: LarkText, place: str) -> Iterator[None]:
    """Puts a place before the path of what is refused inside."""
    text.place = place
    try:
        yield
    except Refused as refused:
        found = refused.refusal
        path = f"{place}{found.path or ''}" or None
        raise Refused(type(found)(found.kind, found.message, path, found.limit)) from refused
