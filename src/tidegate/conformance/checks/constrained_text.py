"""Text that has to have a form: a JSON object, a value of a schema, a match, one of several texts.

A text that the token budget cut is judged as a beginning: an illegal one is a fault, a legal one tells nothing more.
"""

import re
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import Choice
from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.json_beginning import is_json_beginning
from tidegate.conformance.schema_judge import describe_breach
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import NOT_JSON, read_written_json

_CUT = "the token budget ended the answer before its end"


def _choices(exchange: Exchange) -> list[Choice]:
    """Returns the choices. Raises CannotTell where one is a refusal by the model."""
    choices = [choice for _, choice in sorted(answer_of(exchange).choices.items())]
    if any(choice.refusal for choice in choices):
        raise CannotTell("the model refused to answer")
    return choices


def _value_of(choice: Choice) -> Any:
    """Returns the choice's text as JSON, NOT_JSON where it is none. Raises CannotTell for the beginning of one."""
    value = read_written_json(choice.text)
    if value is NOT_JSON and choice.finish_reason == "length" and is_json_beginning(choice.text):
        raise CannotTell(_CUT)
    return value


def is_json_object(exchange: Exchange) -> Iterator[Fault]:
    """The text of every choice is a JSON object, from end to end."""
    for choice in _choices(exchange):
        if choice.text.lstrip()[:1] not in ("", "{") or not isinstance(_value_of(choice), dict):
            yield Fault(f"the content is no JSON object: {choice.text[:200]!r}")


def keeps_schema(exchange: Exchange, *, schema: Any) -> Iterator[Fault]:
    """The text of every choice is a JSON value that the schema allows."""
    for choice in _choices(exchange):
        value = _value_of(choice)
        if value is NOT_JSON:
            yield Fault(f"the content is no JSON: {choice.text[:200]!r}")
        elif (breach := describe_breach(schema, value)) is not None:
            yield Fault(f"the content {choice.text[:200]!r} breaks the schema: {breach}")


def is_cut_json(exchange: Exchange) -> Iterator[Fault]:
    """A text that the budget cut is the beginning of a JSON text, and ends with `length`."""
    choice = answer_of(exchange).choice()
    if read_written_json(choice.text) is not NOT_JSON:
        raise CannotTell("the answer was whole within the budget")
    if choice.finish_reason != "length":
        yield Fault(
            f"finish_reason is {choice.finish_reason!r}, and the content is no whole JSON: {choice.text[:200]!r}"
        )
    if not is_json_beginning(choice.text):
        yield Fault(f"the content is not the beginning of any JSON: {choice.text[:200]!r}")


def whole_json_stops(exchange: Exchange) -> Iterator[Fault]:
    """A text that is a whole JSON value ends with `stop`, and nothing follows it."""
    choice = answer_of(exchange).choice()
    if _value_of(choice) is NOT_JSON:
        yield Fault(f"the content is no JSON: {choice.text[:200]!r}")
    elif choice.finish_reason != "stop":
        yield Fault(f"finish_reason is {choice.finish_reason!r} after a whole JSON value: {choice.text[:200]!r}")


def text_matches(exchange: Exchange, *, pattern: str) -> Iterator[Fault]:
    """The text of every choice matches from end to end."""
    for choice in _choices(exchange):
        if re.fullmatch(pattern, choice.text) is None:
            if choice.finish_reason == "length":
                raise CannotTell(_CUT)
            yield Fault(f"the content {choice.text[:200]!r} does not match {pattern}")


def text_is_among(exchange: Exchange, *, texts: tuple[str, ...]) -> Iterator[Fault]:
    """The text of every choice is one of `texts`; of a cut one, a beginning of one."""
    for choice in _choices(exchange):
        is_cut = choice.finish_reason == "length"
        if choice.text not in texts and not (is_cut and any(text.startswith(choice.text) for text in texts)):
            yield Fault(f"the content is {choice.text[:200]!r}, expected one of {texts!r}")


def tags_keep_schema(exchange: Exchange, *, begin: str, end: str, schema: Any) -> Iterator[Fault]:
    """What stands between `begin` and `end` is a JSON value that the schema allows. Raises CannotTell without any."""
    text = answer_of(exchange).text
    found = re.findall(re.escape(begin) + "(.*?)" + re.escape(end), text, re.DOTALL)
    if not found:
        raise CannotTell(f"the model wrote no {begin}")
    for inner in found:
        value = read_written_json(inner)
        if value is NOT_JSON or describe_breach(schema, value) is not None:
            yield Fault(f"between {begin} and {end} stands {inner[:200]!r}, which the schema does not allow")
