"""Which terminals may stand behind which in a caller's grammar."""

from tidegate.grammar.lark.lark_tree import LarkGrammar, Name, Options, Series, Times, Tree

LAST = ""
"""Stands for the end of the sentence."""


class Followers:
    """`behind[name]`: the terminals that may follow a terminal; `LAST` where it may be the last one."""

    def __init__(self, grammar: LarkGrammar) -> None:
        self._grammar = grammar
        self._first: dict[str, set[str]] = {name: set() for name in grammar.rules}
        self._empty: set[str] = set()
        self.behind: dict[str, set[str]] = {name: set() for name in (*grammar.rules, *grammar.terminals)}
        while sum(self._learn_first(name) for name in reversed(grammar.rules)):
            pass
        self.behind["start"].add(LAST)
        while sum(self._pass(tree, self.behind[name]) for name, tree in grammar.rules.items()):
            pass
        if grammar.ignored is not None:
            for name in grammar.terminals:
                self.behind[name].add(grammar.ignored)
            self.behind[grammar.ignored] |= {*grammar.terminals, LAST}

    def beside(self, name: str) -> set[str]:
        """Returns the terminals that may stand where this one may, itself among them."""
        rows = [self._starts(self._grammar.rules["start"])[0]]
        rows += [self.behind[other] for other in self._grammar.terminals]
        return {name, *(other for row in rows if name in row for other in row if other != LAST)}

    def _learn_first(self, name: str) -> bool:
        before = len(self._first[name]), name in self._empty
        first, is_empty = self._starts(self._grammar.rules[name])
        self._first[name] |= first
        if is_empty:
            self._empty.add(name)
        return before != (len(self._first[name]), name in self._empty)

    def _starts(self, tree: Tree) -> tuple[set[str], bool]:
        """Returns the terminals that a text may begin with, and whether it may be empty."""
        match tree:
            case Name(name) if name in self._first:
                return self._first[name], name in self._empty
            case Name(name):
                return {name}, self._grammar.is_empty(tree)
            case Options(options):
                found = [self._starts(option) for option in options]
                return set().union(*(first for first, _ in found)), any(is_empty for _, is_empty in found)
            case Times(part, least, _):
                first, is_empty = self._starts(part)
                return first, is_empty or least == 0
            case Series(parts):
                firsts: set[str] = set()
                for part in parts:
                    first, is_empty = self._starts(part)
                    firsts = firsts | first
                    if not is_empty:
                        return firsts, False
                return firsts, True
        raise AssertionError(tree)

    def _pass(self, tree: Tree, after: set[str]) -> bool:
        """Tells what stands behind a tree to what stands last in it; returns whether that was news."""
        match tree:
            case Name(name):
                is_news = not after <= self.behind[name]
                self.behind[name] |= after
                return is_news
            case Options(options):
                return sum(self._pass(option, after) for option in options) > 0
            case Times(part, _, most):
                return self._pass(part, after if most == 1 else after | self._starts(part)[0])
            case Series(parts):
                news = []
                for part in reversed(parts):
                    news.append(self._pass(part, after))
                    first, is_empty = self._starts(part)
                    after = after | first if is_empty else first
                return any(news)
        raise AssertionError(tree)
