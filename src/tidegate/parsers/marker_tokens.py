"""Fixed text of a format as the vocabulary spells it: control tokens where it has them, text elsewhere."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.inference.grammar_parts import GrammarPart, Marker, SeriesPart, TextPart, TokenPart, Trigger

_CANDIDATE = re.compile(r"<[^<>\s]{1,64}>|\[/?[A-Z_]{1,40}\]")


@dataclass(frozen=True, slots=True)
class MarkerTokens:
    """What a vocabulary knows of markers. `id_of`: the control token that a text is, None where it is plain text.

    `end_ids`: control tokens that end the output; a marker that is one of them is left to the end.
    """

    id_of: Callable[[str], int | None]
    end_ids: frozenset[int] = frozenset()

    def written(self, text: str) -> tuple[TextPart | TokenPart, ...]:
        """Returns fixed text in parts; end tokens are left out."""
        found: list[TextPart | TokenPart] = []
        at = 0
        for match in _CANDIDATE.finditer(text):
            token_id = self.id_of(match.group())
            if token_id is None:
                continue
            found += [TextPart(text[at : match.start()])] if match.start() > at else []
            found += [TokenPart(token_id)] if token_id not in self.end_ids else []
            at = match.end()
        return (*found, TextPart(text[at:])) if at < len(text) else tuple(found)

    def marker(self, text: str) -> Marker:
        """Returns `text` as a marker of its own."""
        return Marker(text, self.id_of(text))

    def triggers(self, text: str, then: GrammarPart) -> list[Trigger]:
        """Returns what `text` triggers; where it begins with a control token, that token is enough."""
        parts = self.written(text)
        if len(parts) == 1 or not isinstance(parts[0], TokenPart):
            return [Trigger((self.marker(text),), then)]
        behind = Trigger((Marker("", parts[0].token_id),), SeriesPart((*parts[1:], then)))
        return [Trigger((Marker(text),), then), behind]
