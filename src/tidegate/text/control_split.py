"""Finds spelled control tokens in a prompt, except where a seam says that a caller wrote them.

Decides which parts of a prompt are control tokens and which are text for the tokenizer proper. At each place the
longest spelling wins; one that lies across a seam does not count, and a shorter one may. Linear in the text: all
spellings are one regular expression, shaped as a tree of their common beginnings.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidegate.text.rendered_prompt import RenderedPrompt

_Tree = dict[str, "_Tree"]
"""Characters to what may follow; the key "" marks the end of a spelling."""
_SPACE = " \t\n\v\f\r"


_CONTROL_SHAPE = re.compile(r"<[|｜].*[|｜]>|<(?:start|end)_of_turn>", re.DOTALL)


def looks_like_control(spelling: str) -> bool:
    """Whether this is a turn marker by its looks. Some model files have theirs among ordinary added tokens."""
    return _CONTROL_SHAPE.fullmatch(spelling) is not None


@dataclass(frozen=True, slots=True)
class ControlTable:
    """Spellings with their token ids. Empty spellings are left out.

    A token in `strips_left` or `strips_right` swallows the white space on that side.
    """

    ids: Mapping[str, int]
    strips_left: frozenset[int] = frozenset()
    strips_right: frozenset[int] = frozenset()
    spellings: frozenset[str] = field(init=False)
    pattern: re.Pattern[str] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spellings", frozenset(spelling for spelling in self.ids if spelling))
        object.__setattr__(self, "pattern", compile_spellings(self.spellings))


def compile_spellings(spellings: Iterable[str], *, overlapping: bool = False) -> re.Pattern[str] | None:
    """Returns a pattern that finds the longest spelling at each place; None if there are none.

    With `overlapping` every place where a spelling begins is found, as an empty match.
    """
    tree: _Tree = {}
    for spelling in spellings:
        node = tree
        for character in spelling:
            node = node.setdefault(character, {})
        node[""] = {}
    if not tree:
        return None
    source = _pattern_of(tree)
    return re.compile(f"(?={source})" if overlapping else source)


def _pattern_of(node: _Tree) -> str:
    chain = ""
    while len(node) == 1 and "" not in node:
        ((character, child),) = node.items()
        chain += re.escape(character)
        node = child
    branches = [re.escape(key) + _pattern_of(child) for key, child in node.items() if key]
    if not branches:
        return chain
    return f"{chain}(?:{'|'.join(branches)}){'?' if '' in node else ''}"


def split_controls(prompt: RenderedPrompt, table: ControlTable) -> Iterator[int | str]:
    """Yields the prompt's control tokens as ids and the text between them as strings, in order; no empty strings."""
    text, start, at = prompt.text, 0, 0
    while table.pattern is not None and (found := table.pattern.search(text, at)) is not None:
        spelling = _longest_allowed(prompt, table, found.start(), found.end())
        if spelling is None:
            at = found.start() + 1
            continue
        token_id = table.ids[spelling]
        before = text[start : found.start()]
        if token_id in table.strips_left:
            before = before.rstrip(_SPACE)
        if before:
            yield before
        yield token_id
        start = found.start() + len(spelling)
        if token_id in table.strips_right:
            while start < len(text) and text[start] in _SPACE:
                start += 1
        at = start
    if start < len(text):
        yield text[start:]


def _longest_allowed(prompt: RenderedPrompt, table: ControlTable, start: int, end: int) -> str | None:
    """Returns the longest spelling at `start`, no longer than up to `end`, that no seam makes plain."""
    if not prompt.is_plain(start, end):
        return prompt.text[start:end]
    for shorter in range(end - 1, start, -1):
        if prompt.text[start:shorter] in table.spellings and not prompt.is_plain(start, shorter):
            return prompt.text[start:shorter]
    return None
