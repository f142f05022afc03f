"""Text beyond ASCII: whether what had to be said was said, character for character."""

import json
import re
import unicodedata
from collections.abc import Iterator

from tidegate.conformance.checks.generation import answer_of, stream_chunks
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

REPLACEMENT = "\ufffd"
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0f]")


def _skeleton(text: str) -> str:
    """Returns the text as one who does not look at code points sees it."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).replace(" ", "")


def says_in_json(exchange: Exchange, *, text: str) -> Iterator[Fault]:
    """The answer is the one JSON object that its schema allows: {"t": text}. Raises CannotTell where the schema was not
    kept, or the token limit cut it off: that is the business of other cases.
    """
    choice = answer_of(exchange).choice()
    if REPLACEMENT in choice.text.rstrip(REPLACEMENT) and '"t"' in choice.text:
        yield Fault(f"a character was replaced: {choice.text[:80]!r}")
        return
    try:
        found = at(json.loads(choice.text), "t")
    except ValueError:
        raise CannotTell(f"the answer is not the JSON that was asked for: {choice.text[:60]!r}") from None
    if found == text:
        return
    if isinstance(found, str) and _skeleton(found) == _skeleton(text):
        yield Fault(f"the text is {found!a}, it had to be {text!a}")
    else:
        raise CannotTell("the model said something else than the schema allows")


def has_whole_characters(exchange: Exchange) -> Iterator[Fault]:
    """No delta but the last holds U+FFFD: each is whole characters."""
    deltas = []
    for event, chunk in stream_chunks(exchange):
        content = at(chunk, "choices", 0, "delta", "content")
        if isinstance(content, str) and content:
            deltas.append((event, content))
    for event, content in deltas[:-1]:
        if REPLACEMENT in content:
            yield Fault(f"a delta holds part of a character: {content!r}", event)
            return


def is_echoed(exchange: Exchange) -> Iterator[Fault]:
    """The echoed prompt is the prompt, code point for code point."""
    prompt = exchange.request_json["prompt"]
    text = answer_of(exchange).text[: len(prompt)]
    if text != prompt:
        place = next((i for i, (a, b) in enumerate(zip(prompt, text, strict=False)) if a != b), len(text))
        yield Fault(f"character {place} is {text[place : place + 4]!a} of {prompt[place : place + 4]!a}")
