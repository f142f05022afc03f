"""Regular expressions in EBNF, as text or as the inside of a JSON string."""

from collections.abc import Callable

from tidegate.grammar.patterns.char_set import EVERY, Ranges, json_class, plain_class
from tidegate.grammar.patterns.regex_tree import Chars, Choice, Edge, Node, Repeat, Sequence, parse_regex
from tidegate.grammar.refusal import Refused, unsupported

Spell = Callable[[Ranges], str | None]

_ANYTHING = Repeat(Chars(EVERY), 0, None)


def regex_ebnf(pattern: str) -> str | None:
    """Returns text that a pattern matches from end to end; None for no text. Raises Refused."""
    return _write(_anchored(parse_regex(pattern), is_search=False), plain_class)


def pattern_ebnf(pattern: str, least: int = 0, most: int | None = None) -> str | None:
    """Returns what stands within the quotes of a JSON string in which the pattern is found; None for no string.

    Raises Refused, also where a string of between `least` and `most` characters would have to be counted.
    """
    node = _anchored(parse_regex(pattern), is_search=True)
    shortest, longest = _lengths(node)
    if shortest < least or (most is not None and (longest is None or longest > most)):
        raise unsupported("a pattern beside a length")
    return _write(node, json_class)


def may_be_written(pattern: str) -> bool:
    """Whether a string could be written in which the pattern is found; True where that is not known.

    False where it needs a control character without a short escape.
    """
    try:
        return pattern_ebnf(pattern) is not None
    except Refused:
        return True


def _anchored(node: Node, *, is_search: bool) -> Node:
    if isinstance(node, Choice):
        return Choice(tuple(_anchored(option, is_search=is_search) for option in node.options))
    parts = list(node.parts) if isinstance(node, Sequence) else [node]
    if len(parts) == 1 and isinstance(parts[0], Choice | Sequence):
        return _anchored(parts[0], is_search=is_search)
    before: list[Node] = [_ANYTHING] if is_search else []
    after = list(before)
    while parts and parts[0] == Edge(is_start=True):
        before, parts = [], parts[1:]
    while parts and parts[-1] == Edge(is_start=False):
        after, parts = [], parts[:-1]
    return Sequence((*before, *parts, *after))


def _lengths(node: Node) -> tuple[int, int | None]:
    match node:
        case Chars():
            return 1, 1
        case Sequence(parts):
            found = [_lengths(part) for part in parts]
            longest = [high for _, high in found if high is not None]
            return sum(low for low, _ in found), sum(longest) if len(longest) == len(found) else None
        case Choice(options):
            found = [_lengths(option) for option in options]
            longest = [high for _, high in found if high is not None]
            return min(low for low, _ in found), max(longest) if len(longest) == len(found) else None
        case Repeat(part, least, most):
            low, high = _lengths(part)
            return low * least, 0 if high == 0 else None if most is None or high is None else high * most
    raise unsupported("an anchor in the middle of a pattern")


def _write(node: Node, spell: Spell) -> str | None:
    match node:
        case Chars(ranges):
            return spell(ranges)
        case Sequence(parts):
            written = [_write(part, spell) for part in parts]
            present = [text for text in written if text is not None and text != '""']
            return None if None in written else f"({' '.join(present)})" if present else '""'
        case Choice(options):
            found = [text for option in options if (text := _write(option, spell)) is not None]
            return f"({' | '.join(dict.fromkeys(found))})" if found else None
        case Repeat(part, least, most):
            return _repeat(_write(part, spell), least, most)
    raise unsupported("an anchor in the middle of a pattern")


def _repeat(text: str | None, least: int, most: int | None) -> str | None:
    if text is None:
        return '""' if least == 0 else None
    if text == '""' or most == 0:
        return '""'
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}
    bounds = f"{{{least},{'' if most is None else most}}}"
    return text + signs.get((least, most), bounds)
