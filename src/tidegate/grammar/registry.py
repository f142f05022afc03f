"""Grammar backends by name: ours, and those that other distributions bring by an entry point.

The group is `tidegate.grammar_backends`; what an entry point names is called with a `TokenTable` and returns a
`GrammarCompiler`, or raises ValueError when it cannot carry grammars for that vocabulary. `none` is no backend.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint

from tidegate.grammar.matcher import GrammarCompiler, TokenTable

ENTRY_POINT_GROUP = "tidegate.grammar_backends"
DEFAULT_BACKEND = "llguidance"
NO_BACKEND = "none"

MakeCompiler = Callable[[TokenTable], GrammarCompiler]

_BUILT_IN = {
    DEFAULT_BACKEND: "tidegate.grammar.llguidance.llguidance_compiler",
    "xgrammar": "tidegate.grammar.xgrammar.xgrammar_compiler",
}
"""Modules, imported when asked for: what a backend needs may be missing, or large."""

_EXTRAS = {"xgrammar": "tidegate[xgrammar]"}


class UnknownBackend(ValueError):
    """No backend has this name, or it cannot be imported; the message says what to do."""


def find_backend(name: str, entry_points: Iterable[EntryPoint] = ()) -> MakeCompiler | None:
    """Returns how to make a compiler, or None for `none`. Raises UnknownBackend.

    `entry_points` are those of `ENTRY_POINT_GROUP` that are installed; a name of ours is never taken over by one.
    """
    if name == NO_BACKEND:
        return None
    if name in _BUILT_IN:
        return _built_in(name)
    installed = {entry_point.name: entry_point for entry_point in entry_points}
    if name not in installed:
        known = ", ".join(sorted({*_BUILT_IN, *installed, NO_BACKEND}))
        raise UnknownBackend(f"no grammar backend is called {name}; there are {known}. Install one, or choose another")
    try:
        found: MakeCompiler = installed[name].load()
    except (ImportError, AttributeError) as error:
        raise UnknownBackend(f"the grammar backend {name} is installed but cannot be imported: {error}") from error
    return found


def _built_in(name: str) -> MakeCompiler:
    try:
        module = import_module(_BUILT_IN[name])
    except ImportError as error:
        package = _EXTRAS.get(name, "tidegate")
        raise UnknownBackend(
            f"the grammar backend {name} needs what is not installed ({error}): pip install '{package}'"
        ) from error
    made: MakeCompiler = module.make_compiler
    return made
