"""Token counts."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import QUESTION, chat_body, completion_body
from tidegate.conformance.catalog.openers import completions_ask, generated, streamed
from tidegate.conformance.checks.usage import (
    adds_up,
    counts_at_most,
    counts_growing_prompts,
    counts_up,
    has_details_within,
    has_usage,
    sums_choices,
    sums_prompts,
    tells_cached_tokens,
)
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT,)
_STREAMS = (*_CHAT, Capability.STREAMS, Capability.STREAM_USAGE)
_TEXTS = ("One, two, three,", "The days of the week are Monday,")


def _streamed(**fields: Any) -> Ask:
    return Ask(name="streamed", body=streamed(chat_body(**fields), usage=True), is_refusable=True)


def _completion(prompt: Any, name: str = "it") -> Ask:
    return completions_ask(completion_body(prompt, max_tokens=4), name=name, is_refusable=name == "it")


CASES: tuple[Case, ...] = (
    Case(
        id="usage.members",
        title="A whole answer has usage with prompt_tokens, completion_tokens and total_tokens",
        why="Without them nobody can pay by use, or see how full the context is.",
        clauses=("openai:usage.members",),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(Ask(body=chat_body()),),
        expects=(*generated(), expect(has_usage)),
    ),
    Case(
        id="usage.completions_members",
        title="A whole completion has usage with its three counts, which add up",
        why="The older route is billed by what it does not tell.",
        clauses=("openai:usage.members",),
        severity=Severity.WRONG_BILL,
        needs=(Capability.COMPLETIONS,),
        asks=(_completion(_TEXTS[0]),),
        expects=(*generated(), expect(has_usage), expect(adds_up)),
    ),
    Case(
        id="usage.total",
        title="total_tokens is prompt_tokens and completion_tokens together, whole and streamed",
        why="Bills by total differ from bills by parts.",
        clauses=("openai:usage.members",),
        severity=Severity.WRONG_BILL,
        needs=_STREAMS,
        asks=(Ask(body=chat_body()), _streamed()),
        expects=(*generated("it", "streamed"), expect(adds_up), expect(adds_up, "streamed")),
    ),
    Case(
        id="usage.limit",
        title="completion_tokens is never above max_tokens, whole and streamed",
        why="Callers pay for more than they allowed.",
        clauses=("openai:usage.members", "openai:chat.max_tokens"),
        severity=Severity.WRONG_BILL,
        needs=_STREAMS,
        asks=(Ask(body=chat_body(max_tokens=7)), _streamed(max_tokens=7)),
        expects=(
            *generated("it", "streamed"),
            expect(counts_at_most, num_tokens=7),
            expect(counts_at_most, "streamed", num_tokens=7),
        ),
    ),
    Case(
        id="usage.prompt_grows",
        title="A longer prompt has more prompt_tokens",
        why="Prompts are billed at a constant, or cut without a word.",
        clauses=("openai:usage.members",),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(
            Ask(name="short", body=chat_body(max_tokens=1)),
            Ask(name="longer", body=chat_body(" ".join([QUESTION] * 4), max_tokens=1)),
            Ask(body=chat_body(" ".join([QUESTION] * 16), max_tokens=1)),
        ),
        expects=(*generated("short", "longer", "it"), expect(counts_growing_prompts, "short", "longer", "it")),
    ),
    Case(
        id="usage.details",
        title="Cached, reasoning and other parts of a count are never above the count",
        why="Discounts for cached tokens are above the price.",
        clauses=("openai:usage.members",),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(Ask(body=chat_body()), Ask(name="again", body=chat_body(), wave=1)),
        expects=(*generated("it", "again"), expect(has_details_within), expect(has_details_within, "again")),
    ),
    Case(
        id="usage.cached",
        title="cached_tokens is always told, whole and streamed",
        why="Whether a prompt was read from the cache cannot be seen.",
        clauses=("tidegate:usage.cached",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=(Ask(body=chat_body()), _streamed()),
        expects=(*generated("it", "streamed"), expect(tells_cached_tokens), expect(tells_cached_tokens, "streamed")),
    ),
    Case(
        id="usage.choices",
        title="With n = 3 the prompt is counted once and the tokens of all choices together",
        why="Several choices cost one, or the prompt is paid three times.",
        clauses=("openai:usage.choices",),
        severity=Severity.WRONG_BILL,
        needs=(*_CHAT, Capability.CHOICES),
        asks=(Ask(name="one", body=chat_body(max_tokens=4)), Ask(body=chat_body(max_tokens=4, n=3), is_refusable=True)),
        expects=(*generated("one", "it"), expect(sums_choices, "one", "it")),
        tries=2,
    ),
    Case(
        id="usage.choices_streamed",
        title="A streamed answer of three choices counts all of them",
        why="Streams tell the usage of the choice that ended last.",
        clauses=("openai:usage.choices", "openai:stream.usage_chunk"),
        severity=Severity.WRONG_BILL,
        needs=(*_STREAMS, Capability.CHOICES),
        asks=(
            Ask(name="one", body=chat_body(max_tokens=4)),
            Ask(body=streamed(chat_body(max_tokens=4, n=3), usage=True), is_refusable=True),
        ),
        expects=(*generated("one", "it"), expect(sums_choices, "one", "it")),
        tries=2,
    ),
    Case(
        id="usage.prompts",
        title="prompt_tokens of a batch of prompts are those of all its prompts",
        why="A batch is billed as its first prompt.",
        clauses=("openai:usage.choices", "openai:completions.prompts"),
        severity=Severity.WRONG_BILL,
        needs=(Capability.COMPLETIONS, Capability.PROMPT_LISTS),
        asks=(_completion(_TEXTS[0], "first"), _completion(_TEXTS[1], "second"), _completion(list(_TEXTS))),
        expects=(*generated("first", "second", "it"), expect(sums_prompts, "first", "second", "it")),
    ),
    Case(
        id="usage.continuous",
        title="With continuous_usage_stats every chunk tells the usage so far, which never falls",
        why="Who leaves in the middle does not know what was generated.",
        clauses=("tidegate:usage.continuous",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_STREAMS,
        asks=(
            Ask(
                body={
                    **streamed(chat_body()),
                    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
                }
            ),
        ),
        expects=(*generated(), expect(counts_up)),
    ),
)
