"""Tokenize routes as several servers have them: where they are, and what they call the text."""

import unicodedata
from collections.abc import Iterator
from urllib.parse import urlsplit

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.token_counts import token_ids
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at


def path_there(*looked: Exchange) -> str:
    """Returns the path, from the server's root, of the first place that turned text into ids. Raises CannotTell."""
    for exchange in looked:
        ids = at(exchange.json, "tokens")
        if exchange.status == 200 and isinstance(ids, list) and ids and all(type(one) is int for one in ids):
            return urlsplit(exchange.url).path
    raise CannotTell("no place turned a text into token ids")


def path_back(there: Exchange) -> str:
    """Returns the path of the way back: the same place, `detokenize`."""
    return urlsplit(there.url).path.removesuffix("tokenize") + "detokenize"


def text_of(exchange: Exchange) -> str | None:
    """Returns the text, whatever the server calls it; None where there is none."""
    found = [at(exchange.json, name) for name in ("text", "prompt", "content")]
    return next((text for text in found if isinstance(text, str)), None)


def gives_text_back(exchange: Exchange, *, text: str) -> Iterator[Fault]:
    """The text comes back. Raises CannotTell where only blanks or forms of characters differ: some tokenizers normalise
    those, and nobody promises otherwise.
    """
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200")
        return
    found = text_of(exchange)
    if found is None:
        yield Fault(f"no text came back: {exchange.body[:150].decode('utf-8', 'replace')}")
    elif found != text and _without_forms(found) == _without_forms(text):
        raise CannotTell(f"the tokenizer normalises: {found[:100]!r}")
    elif found != text:
        yield Fault(f"the text came back as {found[:150]!r}, expected {text[:150]!r}")


def _without_forms(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split()).casefold()


def count_is_the_prompts(full: Exchange, bare: Exchange, generated: Exchange) -> Iterator[Fault]:
    """The number of tokens, with or without those that a tokenizer adds, is the completion's `usage.prompt_tokens`:
    which of the two a completion reads, servers decide.
    """
    told = at(read_answer(generated).usage, "prompt_tokens")
    if type(told) is not int:
        raise CannotTell("the completion tells no usage.prompt_tokens")
    counts = sorted({len(token_ids(full)), len(token_ids(bare))})
    if told not in counts:
        yield Fault(f"{' or '.join(map(str, counts))} tokens, and usage.prompt_tokens is {told}", ask=generated.ask)
