"""A caller's own Lark grammar as a part of another one: checked, and written for the notation around it."""

import llguidance

from tidegate.grammar.lark.char_oracle import byte_tokenizer
from tidegate.grammar.lark.escaped_lark import EscapedLark
from tidegate.grammar.lark.lark_bounds import check_lark
from tidegate.grammar.lark.lark_product import LarkProduct
from tidegate.grammar.lark.lark_reader import read_lark
from tidegate.grammar.lark.lark_text import LarkText, spell
from tidegate.grammar.lark.lark_tree import LarkGrammar
from tidegate.grammar.lark.llguidance_limits import LIMITS
from tidegate.grammar.lark.llguidance_words import is_about_size, is_about_support, say
from tidegate.grammar.lark.marked_lark import ENDED, MarkedLark
from tidegate.grammar.lark.marker_states import MarkerStates
from tidegate.grammar.refusal import Refused, invalid, too_complex, unsupported

_HEADER = '%llguidance {"no_forcing": true}\n'


def check_embedded(source: str) -> None:
    """Raises Refused for a grammar that is none, or is beyond the bounds."""
    check_lark(source)
    error = llguidance.LLMatcher(byte_tokenizer(), _HEADER + source, log_level=0, limits=LIMITS).get_error()
    if not error or "special token" in error:
        return
    words = say(error, hidden_lines=1)
    if is_about_size(error):
        raise too_complex(f"the grammar is too complex: {words}")
    if is_about_support(error):
        raise unsupported(f"cannot be enforced: {words}")
    raise invalid(f"cannot be compiled: {words}")


def escaped_sentence(text: LarkText, source: str) -> str:
    """Returns the expression of a JSON string, with its quotes, whose text is a sentence. Raises Refused."""
    grammar = _read(source)
    try:
        sentences = LarkProduct(text, grammar, EscapedLark(text, grammar)).sentences()
    except RecursionError as error:
        raise _too_deep() from error
    if False not in sentences:
        raise _without_text()
    quote = spell('"')
    return text.rule(f"{quote} {sentences[False]} {quote}")


def marked_sentence(text: LarkText, source: str, states: MarkerStates, end: str, behind: str) -> str:
    """Returns the expression of a sentence as raw text, `end` behind it, and then `behind`. Raises Refused."""
    grammar = _read(source)
    try:
        boundary = MarkedLark(text, grammar, states, end)
        sentences = LarkProduct(text, grammar, boundary).sentences()
        marker = boundary.marker() if end else ""
    except RecursionError as error:
        raise _too_deep() from error
    options = []
    for place, sentence in sentences.items():
        if place == ENDED or not end:
            options.append(f"{sentence} {behind}")
        elif (place is None or isinstance(place, str)) and states.may_end(place, end):
            options.append(f"{sentence} {marker} {behind}")
    if not options:
        raise _without_text()
    return text.rule(" | ".join(options))


def _read(source: str) -> LarkGrammar:
    check_embedded(source)
    return read_lark(source)


def _without_text() -> Refused:
    return unsupported("no sentence of the grammar can be written in this format")


def _too_deep() -> Refused:
    return too_complex("the grammar is nested too deeply")
