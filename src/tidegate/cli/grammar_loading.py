"""Who holds the served model's output to grammars: the chosen backend, made for its vocabulary."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from tidegate.cli.settings import GrammarSettings
from tidegate.grammar.matcher import GrammarCompiler, TokenTable
from tidegate.grammar.registry import ENTRY_POINT_GROUP, NO_BACKEND, find_backend
from tidegate.serving.served_grammar import NO_GRAMMAR, ServedGrammar
from tidegate.text.vocabulary import Vocabulary


class GrammarUnusable(Exception):
    """`grammar.required` is set, and the backend cannot serve this model; the message says what to do."""


@dataclass(frozen=True, slots=True)
class LoadedGrammar:
    """`compiler` is None where constraints are not served. `warning` says what an operator should know of that."""

    compiler: GrammarCompiler | None
    served: ServedGrammar
    warning: str | None = None


NOT_LOADED = LoadedGrammar(None, NO_GRAMMAR)


def load_grammar(
    settings: GrammarSettings,
    vocabulary: Vocabulary,
    installed: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=ENTRY_POINT_GROUP),
) -> LoadedGrammar:
    """Makes the backend for a vocabulary. Raises GrammarUnusable when there is none and the settings require one."""
    if settings.backend == NO_BACKEND and not settings.required:
        return NOT_LOADED
    try:
        make = find_backend(settings.backend, installed())
        if make is None:
            raise ValueError("it is none: choose llguidance, or another backend that is installed")
        compiler = make(token_table(vocabulary))
    except Exception as error:  # a backend is anybody's code: whatever it raises, it cannot be used
        fault = " ".join(str(error).split())[:400] or type(error).__name__
    else:
        return LoadedGrammar(compiler, ServedGrammar(compiler.identity, settings.required))
    found = f"The grammar backend {settings.backend[:64]} cannot be used for this model: {fault}."
    if settings.required:
        raise GrammarUnusable(
            f"{found} Set grammar.backend to one that can, or grammar.required to false to serve without structured "
            "output."
        )
    reason = f"constrained output is off: the grammar backend {settings.backend[:64]} cannot be used for this model"
    warning = f"{found} Requests for structured output will be answered 422; grammar.backend chooses another one."
    return LoadedGrammar(None, ServedGrammar(None, reason=reason), warning)


def token_table(vocabulary: Vocabulary) -> TokenTable:
    """Returns a model's tokens as grammars see them."""
    ids = range(vocabulary.size)
    special = frozenset(token_id for token_id in ids if vocabulary.is_special(token_id))
    tokens = [vocabulary.token_bytes(token_id) for token_id in ids]
    return TokenTable(tokens, special, vocabulary.eos_token_ids)
