"""Which ends of markers a terminal's texts may leave, found by walking it as a machine over the markers' characters.

All other characters count as one. Long repetitions count as any number, so more may be found than there is.
"""

from dataclasses import dataclass, field

from tidegate.grammar.lark.char_oracle import CharOracle
from tidegate.grammar.lark.lark_tree import LarkGrammar, Name, OneOf, Options, Series, Times, Tree
from tidegate.grammar.lark.marker_states import BROKEN, MarkerStates, State
from tidegate.grammar.refusal import too_complex

MAX_TREE_STATES = 2_000
"""States of one terminal, written out."""

MAX_COPIES = 16
"""Repetitions that are written out; further ones count as any number."""


@dataclass(slots=True)
class TreeMachine:
    """A terminal as a machine: state 0 is its beginning, `end` its end. Characters are "" for all others."""

    free: list[list[int]] = field(default_factory=lambda: [[]])
    moves: list[list[tuple[frozenset[str], int]]] = field(default_factory=lambda: [[]])
    end: int = 0

    def add(self) -> int:
        if len(self.free) >= MAX_TREE_STATES:
            raise too_complex("a terminal of the grammar is too large")
        self.free.append([])
        self.moves.append([])
        return len(self.free) - 1


def machine_of(grammar: LarkGrammar, name: str, oracle: CharOracle) -> TreeMachine:
    machine = TreeMachine()
    machine.end = _build(machine, grammar, Name(name), oracle, 0)
    return machine


def _build(machine: TreeMachine, grammar: LarkGrammar, tree: Tree, oracle: CharOracle, begin: int) -> int:
    match tree:
        case OneOf():
            end = machine.add()
            held = oracle.held(tree)
            others = {""} if oracle.holds_others(tree) else set()
            machine.moves[begin].append((held | others, end))
            return end
        case Name(name):
            return _build(machine, grammar, grammar.terminals[name], oracle, begin)
        case Series(parts):
            for part in parts:
                begin = _build(machine, grammar, part, oracle, begin)
            return begin
        case Options(options):
            end = machine.add()
            for option in options:
                machine.free[_build(machine, grammar, option, oracle, begin)].append(end)
            return end
        case Times():
            return _build_times(machine, grammar, tree, oracle, begin)
    raise AssertionError(tree)


def _build_times(machine: TreeMachine, grammar: LarkGrammar, tree: Times, oracle: CharOracle, begin: int) -> int:
    part, most = tree.part, tree.most
    least = min(tree.least, MAX_COPIES)
    if most is not None and most > MAX_COPIES:
        most = None
    for _ in range(least):
        begin = _build(machine, grammar, part, oracle, begin)
    end = machine.add()
    machine.free[begin].append(end)
    if most is None:
        again = machine.add()
        machine.free[begin].append(again)
        last = _build(machine, grammar, part, oracle, again)
        machine.free[last] += [again, end]
        return end
    for _ in range(most - least):
        begin = _build(machine, grammar, part, oracle, begin)
        machine.free[begin].append(end)
    return end


def ends_of(machine: TreeMachine, states: MarkerStates, begin: State) -> tuple[set[State], bool]:
    """Returns the states in which texts from `begin` end, and whether any text breaks on its way."""
    seen = {(0, begin)}
    waiting = [(0, begin)]
    is_broken = False
    while waiting:
        at, state = waiting.pop()
        following = [(other, state) for other in machine.free[at]]
        for characters, other in machine.moves[at]:
            for character in characters:
                after = states.after(state, character)
                is_broken = is_broken or after == BROKEN
                following += [(other, after)] if after != BROKEN else []
        for item in following:
            if item not in seen:
                seen.add(item)
                waiting.append(item)
    return {state for at, state in seen if at == machine.end}, is_broken


def first_characters(machine: TreeMachine) -> frozenset[str]:
    """Returns the characters that a text may begin with."""
    return frozenset(c for at in _closed(machine, {0}) for held, _ in machine.moves[at] for c in held)


def prefixes_of(machine: TreeMachine, text: str, begin: int) -> list[int]:
    """Returns where the pieces of `text` end that begin at `begin` and are whole texts of the terminal."""
    found = []
    current = _closed(machine, {0})
    for i in range(begin, len(text)):
        current = _closed(machine, {to for at in current for held, to in machine.moves[at] if text[i] in held})
        if machine.end in current:
            found.append(i + 1)
        if not current:
            break
    return found


def _closed(machine: TreeMachine, states: set[int]) -> set[int]:
    seen, waiting = set(states), list(states)
    while waiting:
        for other in machine.free[waiting.pop()]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def goes_on(one: TreeMachine, other: TreeMachine, character: str) -> bool:
    """Whether `other` may take `character` behind a whole text of `one`."""
    seen = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        first, second = waiting.pop()
        if first == one.end and any(character in held for held, _ in other.moves[second]):
            return True
        following = [(after, second) for after in one.free[first]]
        following += [(first, after) for after in other.free[second]]
        for held, after in one.moves[first]:
            following += [(after, last) for also, last in other.moves[second] if held & also]
        for item in following:
            if item not in seen:
                seen.add(item)
                waiting.append(item)
    return False
