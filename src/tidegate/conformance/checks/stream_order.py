"""The grammar of a stream: which chunks may follow which, and what stands once."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import stream_chunks
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at
from tidegate.conformance.wire.sse_reader import DONE, Deviation


def _choices(exchange: Exchange) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yields the event's index, the choice's index, the choice."""
    for event, chunk in stream_chunks(exchange):
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            index = at(choice, "index")
            if isinstance(choice, dict):
                yield event, index if isinstance(index, int) else 0, choice


def is_event_stream(exchange: Exchange) -> Iterator[Fault]:
    """The answer's media type is that of an event stream."""
    if exchange.status == 200 and not exchange.is_stream:
        yield Fault(f"Content-Type is {exchange.headers.get('content-type')!r}, expected text/event-stream")


def is_json_answer(exchange: Exchange) -> Iterator[Fault]:
    """The answer's media type is JSON."""
    found = exchange.headers.get("content-type", "")
    if exchange.status == 200 and found.partition(";")[0].strip().lower() != "application/json":
        yield Fault(f"Content-Type is {found!r}, expected application/json")


def has_one_value(exchange: Exchange, *, member: str) -> Iterator[Fault]:
    """All chunks have the same value of `member`."""
    chunks = [(event, chunk) for event, chunk in stream_chunks(exchange) if "error" not in chunk]
    if len(chunks) < 2:
        raise CannotTell("fewer than two chunks came")
    first = chunks[0][1].get(member, MISSING)
    for event, chunk in chunks:
        found = chunk.get(member, MISSING)
        if found != first or found is MISSING or found == "":
            yield Fault(f"{member} is {found!r}, in the first chunk it was {first!r}", event)
            return


def tells_role_first(exchange: Exchange) -> Iterator[Fault]:
    """The first delta of each choice says that the assistant speaks."""
    seen: set[int] = set()
    for event, index, choice in _choices(exchange):
        if index not in seen:
            seen.add(index)
            role = at(choice, "delta", "role")
            if role != "assistant":
                yield Fault(f"the first delta of choice {index} has role {role!r}, expected 'assistant'", event)


def opens_each_choice(exchange: Exchange) -> Iterator[Fault]:
    """One opening chunk for each choice, role and empty content, in index order, before any other; no role later."""
    opened: list[int] = []
    for event, index, choice in _choices(exchange):
        delta = choice.get("delta")
        if index not in opened:
            if delta != {"role": "assistant", "content": ""}:
                yield Fault(f"choice {index} opens with {delta!r}", event)
            if opened and index < opened[-1]:
                yield Fault(f"choice {index} opens after choice {opened[-1]}", event)
            opened.append(index)
        elif at(delta, "role") is not MISSING:
            yield Fault(f"a later delta of choice {index} tells a role again", event)


def finishes_once(exchange: Exchange) -> Iterator[Fault]:
    """Each choice has exactly one finish_reason, in its last chunk."""
    finished: dict[int, int] = {}
    seen: set[int] = set()
    for event, index, choice in _choices(exchange):
        seen.add(index)
        if index in finished:
            what = "is finished again" if choice.get("finish_reason") is not None else "goes on"
            yield Fault(f"choice {index} {what} after its finish_reason in event {finished[index]}", event)
        elif choice.get("finish_reason") is not None:
            finished[index] = event
    for index in sorted(seen - set(finished)):
        yield Fault(f"choice {index} has no finish_reason")
    if not seen:
        yield Fault("no chunk has a choice")


def finishes_with_empty_delta(exchange: Exchange) -> Iterator[Fault]:
    """The chunk that has the finish_reason has nothing else: its delta is {}."""
    for event, index, choice in _choices(exchange):
        if choice.get("finish_reason") is not None and choice.get("delta") != {}:
            yield Fault(f"choice {index} finishes with delta {choice.get('delta')!r}, expected {{}}", event)


def ends_with_usage(exchange: Exchange) -> Iterator[Fault]:
    """The last chunk before [DONE] has no choices and the usage; no other chunk is without choices."""
    chunks = stream_chunks(exchange)
    event, last = chunks[-1] if chunks else (None, {})
    if last.get("choices") != [] or not isinstance(last.get("usage"), dict):
        yield Fault("the last chunk is not one with choices [] and a usage object", event)
    for event, chunk in chunks[:-1]:
        if chunk.get("choices") == []:
            yield Fault("a chunk before the last has no choices", event)


def has_usage_null_before(exchange: Exchange) -> Iterator[Fault]:
    """Every chunk that has choices carries usage: null."""
    for event, chunk in stream_chunks(exchange):
        if chunk.get("choices") and chunk.get("usage", MISSING) is not None:
            found = "missing" if "usage" not in chunk else f"{chunk['usage']!r}"[:100]
            yield Fault(f"usage is {found}, expected null", event)
            return


def has_no_usage(exchange: Exchange) -> Iterator[Fault]:
    """No chunk tells a usage, and none is without choices."""
    for event, chunk in stream_chunks(exchange):
        if chunk.get("usage") is not None:
            yield Fault(f"usage was not asked for: {chunk['usage']!r}"[:150], event)
        elif chunk.get("choices") == []:
            yield Fault("a chunk without choices, though no usage was asked for", event)


def is_done_once_and_last(exchange: Exchange) -> Iterator[Fault]:
    """[DONE] comes once, as the last event."""
    stream_chunks(exchange)
    at_events = [index for index, timed in enumerate(exchange.events) if timed.event.data == DONE]
    if not at_events:
        yield Fault("no [DONE] came")
    elif len(at_events) > 1:
        yield Fault(f"[DONE] came {len(at_events)} times", at_events[1])
    elif at_events[0] != len(exchange.events) - 1:
        yield Fault("an event follows [DONE]", at_events[0] + 1)


def has_nothing_after_done(exchange: Exchange) -> Iterator[Fault]:
    """No byte follows the blank line that ends [DONE]."""
    stream_chunks(exchange)
    for finding in exchange.framing_findings:
        if finding.deviation is Deviation.AFTER_DONE:
            yield Fault(f"{finding.line!r} at byte {finding.offset} follows [DONE]")
            return


def informs_with_each_chunk(exchange: Exchange) -> Iterator[Fault]:
    """No chunk says nothing: each has a role, text, a call, logprobs, a finish_reason, or usage."""
    for event, chunk in stream_chunks(exchange):
        if chunk.get("usage") or "error" in chunk:
            continue
        choices = chunk.get("choices")
        if not (isinstance(choices, list) and any(_informs(choice) for choice in choices)):
            yield Fault("the chunk says nothing", event)


def _informs(choice: Any) -> bool:
    delta = at(choice, "delta")
    told = [at(choice, name) for name in ("text", "logprobs", "finish_reason")]
    return any(told) or (isinstance(delta, dict) and any(delta.values()))


def ends_with_error(exchange: Exchange) -> Iterator[Fault]:
    """What failed after it began: the last event is an error object; no finish_reason, no [DONE]."""
    chunks = stream_chunks(exchange)
    event, last = chunks[-1] if chunks else (None, {})
    error = last.get("error")
    if not isinstance(error, dict) or not all(isinstance(error.get(name), str) for name in ("message", "type")):
        yield Fault("the last event holds no error object with message and type", event)
    elif not isinstance(error.get("code"), str | None) or not isinstance(error.get("param"), str | None):
        yield Fault(f"code and param of an error are texts or null: {error!r}"[:200], event)
    if exchange.is_done:
        yield Fault("[DONE] follows the error: a client takes the text for whole")
    for at_event, index, choice in _choices(exchange):
        if choice.get("finish_reason") is not None:
            yield Fault(f"choice {index} has finish_reason {choice['finish_reason']!r} and then failed", at_event)
