"""Which sequences hold which beginnings: an index over blocks of tokens, and the order in which they are forgotten.

Decides how much of a prompt is there already and who holds it, which sequence is not worth keeping because another
holds the same and more, and whose tail is evicted next. Owners are sequence ids. Every owner ends at one node and
holds all that lies on the way to it from its root:

    root of a salt --- "the system prompt" --+-- "a question, an answer"      owner 3, cached
                                             +-- "another question"           owner 0, locked
                                             +-- "a third" -- "its answer"    owner 7, cached

- Each salt has a root of its own: what was read under one is never found under another.
- A node holds a run of whole blocks. A run is split where two owners part; a split moves no memory, and is not undone.
- Locked owners run; they end anywhere, and their blocks are not to be touched. The others are cached: each is the only
  owner of a leaf. A cached owner that another one reaches or passes is redundant: who caused that is told, and removes
  it. So ids, of which there are few, are spent on what nobody else holds.
- Eviction takes the tail of the cached owner that was used least recently, as far as nobody else holds it. What is
  left after that is redundant, or nothing. So a beginning outlives all that followed it.

- Nodes hold whole blocks. A cached owner keeps as its tail what it has behind them: the end of a conversation, from
  which the next turn goes on. Whoever makes the owner redundant makes its tail go too.

Does not know memory, block numbers, or time: the order of calls is the order of use. Of a block that nobody holds, a
match tells who has one with the same beginning.
Known weakness: a run that two sequences read at the same time is held twice until one of them ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.errors import InternalError


@dataclass(frozen=True, slots=True)
class Match:
    """The longest known beginning, and an owner that holds it: whole blocks, and `num_bytes` of the block behind them.

    Where the next block of nobody begins alike, `num_bytes` is 0.
    """

    num_blocks: int
    owner: int
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Evicted:
    """A cached owner is to keep its first `num_kept` blocks; with 0 it is forgotten."""

    owner: int
    num_kept: int


@dataclass(eq=False, slots=True)
class _Node:
    """A run of blocks below `parent`; `depth` counts the blocks from the root to its end."""

    parent: "_Node | None"
    run: bytes
    depth: int
    children: dict[bytes, "_Node"] = field(default_factory=dict)
    owners: dict[int, None] = field(default_factory=dict)


class RadixTree:
    """Owners by what they hold. Tokens are packed, `block_bytes` to a block; only whole blocks go in."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._roots: dict[bytes, _Node] = {}
        self._salts: dict[_Node, bytes] = {}
        self._ends: dict[int, _Node] = {}
        self._cached: dict[int, None] = {}
        self._tails: dict[int, bytes] = {}

    @property
    def owners(self) -> frozenset[int]:
        return frozenset(self._ends)

    @property
    def cached_owners(self) -> tuple[int, ...]:
        """Owners that are not locked, the least recently used first."""
        return tuple(self._cached)

    def is_cached(self, owner: int) -> bool:
        return owner in self._cached

    def num_blocks(self, owner: int) -> int:
        """Returns how many blocks `owner` is known to hold."""
        return self._ends[owner].depth

    def num_bytes(self, owner: int) -> int:
        """Returns how many bytes of tokens `owner` is known to hold, its tail included."""
        return self._ends[owner].depth * self._block_bytes + len(self._tails.get(owner, b""))

    def match(self, salt: bytes, tokens: bytes) -> Match | None:
        """Returns the longest beginning of `tokens` that an owner holds under `salt`; None when not one block is
        there. Changes nothing.
        """
        root = self._roots.get(salt)
        if root is None:
            return None
        node, offset = self._walk(root, tokens)
        if offset == 0:
            return None
        node, num_bytes = self._look_into_next(node, offset, tokens)
        while not node.owners:
            node = next(iter(node.children.values()))
        return Match(offset // self._block_bytes, next(iter(node.owners)), num_bytes)

    def enter(self, owner: int, salt: bytes) -> None:
        """Takes a new owner, locked, that holds nothing yet."""
        root = self._roots.get(salt)
        if root is None:
            root = self._roots[salt] = _Node(None, b"", 0)
            self._salts[root] = salt
        self._attach(owner, root)

    def join(self, owner: int, other: int, num_blocks: int) -> list[int]:
        """Takes a new owner, locked, that holds the first `num_blocks` of `other`, or all if those are fewer.

        Returns the cached owners that are redundant now.
        """
        self._attach(owner, self._node_at(other, num_blocks))
        return self._redundant_at(self._ends[owner])

    def insert(self, owner: int, tokens: bytes) -> list[int]:
        """Says that `owner`, locked, also holds `tokens` behind what it is known to hold.

        Returns the cached owners that are redundant now.
        """
        start = self._ends[owner]
        self._detach(owner)
        node, offset = self._walk(start, tokens)
        past = node.depth - start.depth - offset // self._block_bytes
        if past:
            node = self._split(node, node.depth - past)
        known = node
        if offset < len(tokens):
            run = tokens[offset:]
            if node.parent is not None and not node.owners and not node.children:
                # Nobody else was there: its run grows.
                node.run += run
                node.depth += len(run) // self._block_bytes
                self._attach(owner, node)
                return []
            child = _Node(node, run, node.depth + len(run) // self._block_bytes)
            node.children[run[: self._block_bytes]] = child
            node = child
        self._attach(owner, node)
        # Cached owners end at leaves: the way leads past them only where it began, or where it left what was known.
        return [owner for at in dict.fromkeys((start, known, node)) for owner in self._redundant_at(at)]

    def cut(self, owner: int, num_blocks: int) -> None:
        """Says that `owner` holds only its first `num_blocks` any more, and no tail."""
        self._tails.pop(owner, None)
        node = self._node_at(owner, num_blocks)
        old = self._ends[owner]
        if node is not old:
            self._detach(owner)
            self._attach(owner, node)
            self._prune(old)

    def lock(self, owner: int) -> None:
        """A cached owner runs again, and has no tail any more."""
        del self._cached[owner]
        self._tails.pop(owner, None)

    def unlock(self, owner: int, tail: bytes = b"") -> bool:
        """Makes an owner cached, the most recently used one; `tail`, less than a block, is what it holds at its end.

        Returns False, and removes it, where somebody else holds its blocks, or it has none.
        """
        node = self._ends[owner]
        if node.parent is None or node.children or len(node.owners) > 1:
            self.remove(owner)
            return False
        self._cached[owner] = None
        if tail:
            self._tails[owner] = tail
        return True

    def touch(self, owner: int) -> None:
        """Makes a cached owner the most recently used one; does nothing for a locked one."""
        if owner in self._cached:
            del self._cached[owner]
            self._cached[owner] = None

    def remove(self, owner: int) -> None:
        """Forgets an owner and what nobody else holds."""
        node = self._ends[owner]
        self._detach(owner)
        self._cached.pop(owner, None)
        self._tails.pop(owner, None)
        self._prune(node)

    def rename(self, owner: int, other: int) -> None:
        """A cached owner has another id from now on."""
        node = self._ends.pop(owner)
        del node.owners[owner]
        self._attach(other, node)
        if owner in self._tails:
            self._tails[other] = self._tails.pop(owner)
        self._cached = {other if key == owner else key: None for key in self._cached}

    def evict(self, num_blocks: int) -> Evicted | None:
        """Takes at most `num_blocks` from the end of the cached owner that was used least recently.

        What it held alone may be fewer. Returns what is left of it; None when nobody is cached.
        """
        owner = next(iter(self._cached), None)
        if owner is None:
            return None
        node = self._ends[owner]
        goal, depth = max(0, node.depth - num_blocks), node.depth
        while depth > goal and node.parent is not None:
            above = node.parent
            depth = max(goal, above.depth)
            if depth == above.depth and (above.owners or len(above.children) > 1 or above.parent is None):
                self.remove(owner)
                return Evicted(owner, 0)
            node = above
        self.cut(owner, depth)
        return Evicted(owner, depth)

    def check_integrity(self) -> None:
        """Raises InternalError when a law of the tree is broken."""
        seen: set[int] = set()
        for root in self._roots.values():
            for node in _nodes(root):
                seen |= node.owners.keys()
                _check_node(node, self._block_bytes)
                for owner in node.owners:
                    if self._ends.get(owner) is not node:
                        raise InternalError(f"owner {owner} is found where it does not end")
                    if owner in self._cached and (node.children or len(node.owners) > 1 or node.parent is None):
                        raise InternalError(f"owner {owner} is cached for nothing")
        for owner, tail in self._tails.items():
            if owner not in self._cached or not 0 < len(tail) < self._block_bytes:
                raise InternalError(f"owner {owner} has a tail of {len(tail)} bytes")
        if seen != self._ends.keys() or not self._cached.keys() <= seen:
            raise InternalError(f"owners {sorted(seen)} are in the tree, {sorted(self._ends)} are known")

    def _walk(self, node: _Node, tokens: bytes) -> tuple[_Node, int]:
        """Follows `tokens` below `node`; returns the node where they part from it or end, and how many bytes agree.

        The node's own run may reach further than that.
        """
        size, offset = self._block_bytes, 0
        while offset < len(tokens):
            child = node.children.get(tokens[offset : offset + size])
            if child is None:
                break
            num_common = _num_common(child.run, tokens, offset, size)
            offset += num_common
            node = child
            if num_common < len(child.run):
                break
        return node, offset

    def _look_into_next(self, node: _Node, offset: int, tokens: bytes) -> tuple[_Node, int]:
        """Returns who goes on like `tokens` for the longest behind `offset`, where no whole block agrees any more, and
        for how many bytes. `node` is the one that `_walk` came to.
        """
        size, wanted = self._block_bytes, tokens[offset : offset + self._block_bytes]
        num_inside = offset - (node.depth * size - len(node.run))
        if num_inside < len(node.run):
            return node, _num_alike(node.run[num_inside : num_inside + size], wanted)
        if not node.children:
            # Who is cached ends alone, so at most one of these has a tail.
            return node, max(_num_alike(self._tails.get(owner, b""), wanted) for owner in node.owners)
        # Each child has an owner below it, and of those there are few.
        best, num_bytes = node, 0
        for first, child in node.children.items():
            num_common = _num_alike(first, wanted)
            if num_common > num_bytes:
                best, num_bytes = child, num_common
        return best, num_bytes

    def _node_at(self, owner: int, num_blocks: int) -> _Node:
        """Returns the node on an owner's way that ends after `num_blocks`; makes it by a split."""
        node = self._ends[owner]
        while node.parent is not None and node.parent.depth >= num_blocks:
            node = node.parent
        return self._split(node, num_blocks) if num_blocks < node.depth else node

    def _split(self, node: _Node, depth: int) -> _Node:
        """Returns a new node that takes over the run of `node` down to `depth`, its end excluded."""
        parent = node.parent
        assert parent is not None
        at = (depth - parent.depth) * self._block_bytes
        upper = _Node(parent, node.run[:at], depth)
        parent.children[node.run[: self._block_bytes]] = upper
        node.run = node.run[at:]
        node.parent = upper
        upper.children[node.run[: self._block_bytes]] = node
        return upper

    def _attach(self, owner: int, node: _Node) -> None:
        node.owners[owner] = None
        self._ends[owner] = node

    def _detach(self, owner: int) -> None:
        del self._ends.pop(owner).owners[owner]

    def _prune(self, node: _Node) -> None:
        """Removes a node that nobody holds any more, and those above it."""
        while not node.owners and not node.children:
            parent = node.parent
            if parent is None:
                del self._roots[self._salts.pop(node)]
                return
            del parent.children[node.run[: self._block_bytes]]
            node = parent

    def _redundant_at(self, node: _Node) -> list[int]:
        if not node.children and len(node.owners) == 1:
            return []
        return [owner for owner in node.owners if owner in self._cached]


def _num_common(run: bytes, tokens: bytes, offset: int, size: int) -> int:
    """Returns how many bytes, in whole blocks, of `run` stand in `tokens` at `offset`. The first block does."""
    if tokens.startswith(run, offset):
        return len(run)
    # Half of a doubtful stretch at a time: comparing bytes is fast, and looping over blocks is not.
    low, high = 1, len(run) // size
    while low < high:
        middle = (low + high + 1) // 2
        if tokens.startswith(run[: middle * size], offset):
            low = middle
        else:
            high = middle - 1
    return low * size


def _num_alike(block: bytes, tokens: bytes) -> int:
    """Returns how many bytes agree before the first that does not."""
    pairs = enumerate(zip(block, tokens, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(block), len(tokens)))


def _nodes(root: _Node) -> Iterator[_Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children.values()


def _check_node(node: _Node, block_bytes: int) -> None:
    if not node.owners and not node.children:
        raise InternalError("a node of the tree is held by nobody")
    for first, child in node.children.items():
        is_whole = len(child.run) == (child.depth - node.depth) * block_bytes
        if child.parent is not node or not child.run or not is_whole or child.run[:block_bytes] != first:
            raise InternalError(f"a run of {len(child.run)} bytes does not fit below depth {node.depth}")
