"""Stop strings: where an answer must end, told from the same answer without them.

The stops of a case are cut out of a first, greedy answer (`take_stop` and its like), so that any model says them again.
"""

from collections.abc import Iterator, Sequence

from tidegate.conformance.checks.generation import answer_of, usage_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

NEVER_SAID = "\u0002zqx\u0003"
"""Ends a stop that begins as an answer does, and that no model completes."""


def take_stop(first: Exchange, *, start: int, length: int) -> str:
    """Returns `length` characters of the answer, from `start` or soon after, that it holds nowhere before. Raises
    CannotTell where it has none that neither begin nor end with a blank.
    """
    text = answer_of(first).text
    for begin in range(start, min(start + 8, len(text) - length)):
        stop = text[begin : begin + length]
        if stop == stop.strip() and "\ufffd" not in stop and text.find(stop) == begin:
            return stop
    raise CannotTell(f"the answer {text[:60]!r} has no part that can serve as a stop")


def take_stop_list(first: Exchange, *, parts: Sequence[tuple[int, int]]) -> list[str]:
    """Returns a stop for each (start, length). Raises CannotTell as `take_stop` does, and where two are the same."""
    stops = [take_stop(first, start=start, length=length) for start, length in parts]
    if len(set(stops)) < len(stops):
        raise CannotTell("the answer repeats itself too much for several stops")
    return stops


def take_nested_stops(first: Exchange) -> list[str]:
    """Returns a stop, and another that begins later inside it and is completed before it. Raises CannotTell as
    `take_stop` does, and where none can be found.
    """
    text = answer_of(first).text
    outer = take_stop(first, start=4, length=7)
    begin = text.find(outer)
    for place in range(1, len(outer) - 2):
        inner = outer[place : place + 2]
        if inner == inner.strip() and text.find(inner) == begin + place:
            return [outer, inner]
    raise CannotTell(f"the answer {text[:60]!r} repeats itself too much for two stops")


def take_unfinished_stop(first: Exchange, *, length: int) -> str:
    """Returns a stop that the answer's last characters begin, and nothing completes."""
    text = answer_of(first).text
    if len(text) < length + 2:
        raise CannotTell(f"the answer {text!r} is too short")
    return text[-length:] + NEVER_SAID


def stops_of(exchange: Exchange) -> list[str]:
    """Returns the stops that were asked for."""
    asked = exchange.request_json.get("stop")
    return [asked] if isinstance(asked, str) else list(asked or ())


def text_before(text: str, stops: Sequence[str]) -> tuple[str, str] | None:
    """Returns the text before the stop that completes first, and that stop; None where none is completed."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text.endswith(stop, 0, end)]
        if ending:
            stop = max(ending, key=len)
            return text[: end - len(stop)], stop
    return None


def _expected(first: Exchange, stopped: Exchange) -> tuple[str, str]:
    expected = text_before(answer_of(first).text, stops_of(stopped))
    if expected is None:
        raise CannotTell("the answer without stops holds none of them")
    return expected


def holds_no_stop(stopped: Exchange) -> Iterator[Fault]:
    """No stop stands in the text of any choice."""
    for index, choice in sorted(answer_of(stopped).choices.items()):
        for stop in stops_of(stopped):
            if stop in choice.text:
                yield Fault(f"choice {index} holds the stop {stop!r}: {choice.text[-60:]!r}")


def ends_before_stop(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """Each choice is all of the text before the stop, and no more of it."""
    expected, stop = _expected(first, stopped)
    for index, choice in sorted(answer_of(stopped).choices.items()):
        text = choice.text
        if text == expected:
            continue
        if expected.startswith(text):
            yield Fault(
                f"choice {index} lacks {expected[len(text) :]!r}, which stands before the stop", ask=stopped.ask
            )
        elif text.startswith(expected):
            yield Fault(f"choice {index} goes on with {text[len(expected) :][:40]!r} at stop {stop!r}", ask=stopped.ask)
        else:
            raise CannotTell("the same greedy request was answered in another way")


def finishes_with_stop(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """What a stop ended finishes with `stop`."""
    expected, _ = _expected(first, stopped)
    choice = answer_of(stopped).choice()
    if not choice.text.startswith(expected[:1]):
        raise CannotTell("the same greedy request was answered in another way")
    if choice.finish_reason != "stop":
        yield Fault(f"finish_reason is {choice.finish_reason!r}, a stop ended the answer", ask=stopped.ask)


def is_untouched(first: Exchange, second: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """A stop that is never completed takes nothing from the answer. `second`: the answer without stops again. Raises
    CannotTell where another answer came: not one with characters more or less.
    """
    expected = answer_of(first).choice()
    if answer_of(second).text != expected.text:
        raise CannotTell("the server answers the same greedy request in two ways")
    found = answer_of(stopped).choice()
    if found.text != expected.text:
        if not (_is_part(found.text, expected.text) or _is_part(expected.text, found.text)):
            raise CannotTell("with a stop the server gives quite another answer")
        yield Fault(
            f"the text is {found.text[-60:]!r}, without the stop it is {expected.text[-60:]!r}", ask=stopped.ask
        )
    elif found.finish_reason != expected.finish_reason:
        yield Fault(f"finish_reason is {found.finish_reason!r} instead of {expected.finish_reason!r}", ask=stopped.ask)


def _is_part(text: str, whole: str) -> bool:
    """Returns whether the text is left when characters are taken from the whole."""
    rest = iter(whole)
    return all(character in rest for character in text)


def is_untouched_by_prompt(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """A stop that stands in the prompt, and not in the answer, ends nothing."""
    expected, found = answer_of(first).text, answer_of(stopped).choice()
    if any(stop in expected for stop in stops_of(stopped)):
        raise CannotTell("the model says the stop again")
    if len(found.text) < len(expected) and expected.startswith(found.text):
        yield Fault(f"the answer ends with {found.text[-40:]!r}; without the stop it goes on")


def counts_less(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """An answer that a stop ended early counts fewer tokens than the same answer without."""
    expected, _ = _expected(first, stopped)
    if answer_of(stopped).text != expected:
        raise CannotTell("the answer does not end at its stop")
    whole, found = usage_of(first)["completion_tokens"], usage_of(stopped)["completion_tokens"]
    if found >= whole:
        yield Fault(f"completion_tokens is {found}, and {whole} for the whole answer, which is longer")


def counts_through_stop(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """completion_tokens counts the tokens up to and including the one that completed the stop. `first` has logprobs."""
    expected, stop = _expected(first, stopped)
    if answer_of(stopped).text != expected:
        raise CannotTell("the answer does not end at its stop")
    num_bytes = len((expected + stop).encode())
    for position, entry in enumerate(answer_of(first).choice().logprobs):
        token_bytes = at(entry, "bytes")
        if not isinstance(token_bytes, list):
            raise CannotTell("logprobs have no bytes to count tokens by")
        num_bytes -= len(token_bytes)
        if num_bytes <= 0:
            found = usage_of(stopped)["completion_tokens"]
            if found != position + 1:
                yield Fault(f"completion_tokens is {found}; token {position + 1} completed the stop")
            return
    raise CannotTell("logprobs do not reach the stop")


def tells_stop_reason(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """`stop_reason` is the stop string that ended the answer."""
    _, stop = _expected(first, stopped)
    found = answer_of(stopped).choice().stop_reason
    if found != stop:
        yield Fault(f"stop_reason is {found!r}, the stop was {stop!r}", ask=stopped.ask)


def ends_with_stop(first: Exchange, stopped: Exchange) -> Iterator[Fault]:
    """Where the stop was asked to stay, the text ends with it."""
    expected, stop = _expected(first, stopped)
    if answer_of(stopped).text != expected + stop:
        yield Fault(f"the text is {answer_of(stopped).text!r}, expected {expected + stop!r}", ask=stopped.ask)


def says(exchange: Exchange, *, text: str, finish: str) -> Iterator[Fault]:
    """Exactly this text and finish_reason: what a script prescribes."""
    choice = answer_of(exchange).choice()
    if (choice.text, choice.finish_reason) != (text, finish):
        yield Fault(f"the answer is {choice.text!r}, {choice.finish_reason!r}; expected {text!r}, {finish!r}")
