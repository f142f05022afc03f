"""Grammar backends by name: ours, and those that other distributions bring by an entry point.

The group is `tidegate.grammar_backends`; what an entry point names is called with a `TokenTable` and returns a
`GrammarCompiler`, or raises ValueError when it cannot carry grammars for that vocabulary. `none` is no backend.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint

from tidegate.grammar.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import GrammarCompiler, TokenTable

ENTRY_POINT_GROUP = "tidegate.grammar_backends"
DEFAULT_BACKEND = "llguidance"
NO_BACKEND = "none"

MakeCompiler = Callable[[TokenTable], GrammarCompiler]

_BUILT_IN: dict[str, MakeCompiler] = {DEFAULT_BACKEND: make_compiler}


class UnknownBackend(ValueError):
    """No backend has this name, or it cannot be imported; the message says what to do."""


def find_backend(name: str, entry_points: Iterable[EntryPoint] = ()) -> MakeCompiler | None:
    """Returns how to make a compiler, or None for `none`. Raises UnknownBackend.

    `entry_points` are those of `ENTRY_POINT_GROUP` that are installed; a name of ours is never taken over by one.
    """
    if name == NO_BACKEND:
        return None
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    installed = {entry_point.name: entry_point for entry_point in entry_points}
    if name not in installed:
        known = ", ".join(sorted({*_BUILT_IN, *installed, NO_BACKEND}))
        raise UnknownBackend(f"no grammar backend is called {name}; there are {known}. Install one, or choose another")
    try:
        found: MakeCompiler = installed[name].load()
    except (ImportError, AttributeError) as error:
        raise UnknownBackend(f"the grammar backend {name} is installed but cannot be imported: {error}") from error
    return found
