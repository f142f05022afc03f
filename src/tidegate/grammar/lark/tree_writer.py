"""Writes trees of terminals as Lark text: regular expressions as far as no other terminal is named inside."""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.grammar.lark.lark_tree import Fixed, Name, OneOf, Options, Series, Times, Tree


@dataclass(frozen=True, slots=True)
class Piece:
    """A regular expression, or an expression of Lark."""

    text: str
    is_regex: bool

    def in_lark(self) -> str:
        if not self.is_regex:
            return self.text
        return f"/{self.text}/" if self.text else '""'


@dataclass(frozen=True, slots=True)
class TreeWriter:
    """`leaf` writes one character as a regular expression, `name` another terminal; None: nothing matches it."""

    leaf: Callable[[OneOf], str | None]
    name: Callable[[str], str | None]

    def write(self, tree: Tree) -> Piece | None:
        """Returns None where nothing matches."""
        match tree:
            case OneOf():
                return _regex(self.leaf(tree))
            case Fixed(pattern):
                return Piece(pattern, is_regex=True)
            case Name(name):
                found = self.name(name)
                return None if found is None else Piece(found, is_regex=False)
            case Series(parts):
                return self._series(parts)
            case Options(options):
                return self._options(options)
            case Times(part, least, most):
                return self._times(part, least, most)

    def _series(self, parts: tuple[Tree, ...]) -> Piece | None:
        pieces = []
        for part in parts:
            piece = self.write(part)
            if piece is None:
                return None
            pieces.append(piece)
        if all(piece.is_regex for piece in pieces):
            return Piece("".join(piece.text for piece in pieces), is_regex=True)
        return Piece(f"({' '.join(piece.in_lark() for piece in pieces)})", is_regex=False)

    def _options(self, options: tuple[Tree, ...]) -> Piece | None:
        pieces = [piece for option in options if (piece := self.write(option)) is not None]
        if not pieces:
            return None
        if all(piece.is_regex for piece in pieces):
            return Piece(f"(?:{'|'.join(piece.text for piece in pieces)})", is_regex=True)
        return Piece(f"({' | '.join(piece.in_lark() for piece in pieces)})", is_regex=False)

    def _times(self, part: Tree, least: int, most: int | None) -> Piece | None:
        piece = None if most == 0 else self.write(part)
        if piece is None:
            return Piece("", is_regex=True) if least == 0 else None
        bounds = f"{{{least},{'' if most is None else most}}}"
        if piece.is_regex:
            return Piece(f"(?:{piece.text}){bounds}", is_regex=True)
        return Piece(f"({piece.text}){bounds}", is_regex=False)


def _regex(text: str | None) -> Piece | None:
    return None if text is None else Piece(text, is_regex=True)
