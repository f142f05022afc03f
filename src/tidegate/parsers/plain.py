"""The parser of models that write nothing but content."""

from tidegate.inference.event import ContentText, ParsedEvent


class PlainParser:
    """All text is content, at once."""

    __slots__ = ()

    def feed(self, text: str) -> list[ParsedEvent]:
        return [ContentText(text)] if text else []

    def finish(self, *, is_cut: bool = False) -> list[ParsedEvent]:  # noqa: ARG002 (nothing is held)
        return []
