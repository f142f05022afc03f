"""Two answers to one question, read in two manners: what one reader gets, the other must get."""

from collections.abc import Iterator

from tidegate.conformance.answer import read_answer
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange


def is_same_to_slow_reader(first: Exchange, second: Exchange, slow: Exchange) -> Iterator[Fault]:
    """The slow reader gets the text, the finish reason and the end that two fast readers got. Raises CannotTell where
    those two got different ones: the model does not repeat itself.
    """
    told = [_told(exchange) for exchange in (first, second, slow)]
    if told[0] != told[1]:
        raise CannotTell("the server does not answer the same question twice with the same text")
    if told[2] != told[0]:
        yield Fault(f"{_in_words(told[2])}; a fast reader got {_in_words(told[0])}", ask=slow.ask)


def has_exact_text(exchange: Exchange, *, text: str, repeat: int) -> Iterator[Fault]:
    """The text is `text`, `repeat` times: nothing lost, doubled or out of order."""
    found, wanted = read_answer(exchange).text, text * repeat
    if found != wanted:
        where = next(
            (at for at, (left, right) in enumerate(zip(found, wanted, strict=False)) if left != right),
            min(len(found), len(wanted)),
        )
        yield Fault(f"{len(found)} characters, expected {len(wanted)}; they part at {where}")


def _told(exchange: Exchange) -> tuple[str, str | None, bool]:
    answer = read_answer(exchange)
    return answer.text, answer.choice().finish_reason, exchange.is_done or not exchange.is_stream


def _in_words(told: tuple[str, str | None, bool]) -> str:
    text, finish, is_done = told
    return f"{len(text)} characters, finish {finish}, {'to its end' if is_done else 'without [DONE]'}"
