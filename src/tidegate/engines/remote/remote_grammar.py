"""A request's constraint as the text that llguidance compiles, here and in a remote engine alike.

The server has compiled the same source before the request was admitted (`grammar/llguidance`): what goes out has been
checked, and the engine's llguidance reads what ours has read. A constraint that begins behind reasoning becomes one
grammar, with free text up to what ends the reasoning. Pure.
"""

from collections import OrderedDict
from collections.abc import Callable

from tidegate.engines.remote.sampling_facts import unserved_constraint
from tidegate.grammar.llguidance.grammar_source import grammar_source, with_header
from tidegate.grammar.refusal import Refused
from tidegate.grammar.spec_part import spec_part
from tidegate.inference.grammar_parts import CompositeSpec, FreeUntilPart, Marker, Trigger
from tidegate.inference.grammar_spec import GrammarRule, GrammarSpec

TRIAL_GRAMMAR = with_header('start: %json {"type": "integer", "multipleOf": 10, "minimum": -10, "maximum": -10}')
"""Older llguidance allows nothing here, so that only an end token comes; from 1.9 on it is -10. What else
the older ones lack (one spelling for a key, an end to white space) came with the same versions.
"""
TOO_OLD = "its llguidance is older than 1.9 and enforces less than is promised"

MAX_KEPT = 32
"""Texts that are kept: each choice of a request asks for the same one."""


class GrammarWriter:
    """`control_ids`: tokens that stand for no text, end tokens aside. `spell`: the text of any other token."""

    def __init__(self, control_ids: frozenset[int], spell: Callable[[int], bytes]) -> None:
        self._control_ids = control_ids
        self._spell = spell
        self._kept: OrderedDict[GrammarRule, str] = OrderedDict()

    @property
    def num_kept(self) -> int:
        return len(self._kept)

    def text(self, rule: GrammarRule) -> str:
        """Returns the grammar. Raises UnsupportedParameter for what cannot be written as one."""
        text = self._kept.pop(rule, None)
        if text is None:
            try:
                text = with_header(grammar_source(self._whole(rule), self._control_ids).text)
            except Refused as refused:
                raise unserved_constraint(refused.refusal.message) from None
        self._kept[rule] = text
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return text

    def _whole(self, rule: GrammarRule) -> GrammarSpec:
        """Returns the constraint on the whole output."""
        if not rule.starts_after:
            return rule.spec
        then = spec_part(rule.spec, "")
        triggers = tuple(Trigger((self._marker(ids),), then) for ids in rule.starts_after)
        rules = rule.spec.rules if isinstance(rule.spec, CompositeSpec) else ()
        return CompositeSpec(FreeUntilPart(triggers), rules)

    def _marker(self, token_ids: tuple[int, ...]) -> Marker:
        if len(token_ids) == 1 and token_ids[0] in self._control_ids:
            return Marker("", token_ids[0])
        if self._control_ids.isdisjoint(token_ids):
            try:
                return Marker(b"".join(map(self._spell, token_ids)).decode())
            except UnicodeDecodeError:
                pass
        raise unserved_constraint("not behind this model's reasoning, with this engine")
