"""Clients that go away: the work for them ends, and what it held is there for others."""

from typing import Any

from tidegate.conformance.ask import Ask, Leaving, Manner
from tidegate.conformance.capability import Capability
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import completion_body
from tidegate.conformance.catalog.load_asks import (
    LONG_QUESTION,
    LONG_SCRIPT,
    back_ask,
    long_body,
    metrics_ask,
    probe_ask,
    rest_ask,
)
from tidegate.conformance.checks.load import has_quickened, is_back_to, was_running
from tidegate.conformance.checks.whole_answer import is_whole_answer

_WHY = "Requests of clients that gave up keep their slots: the server computes for nobody and others wait."
_AFTER_A_WHILE = Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=1.5)


def _leaving(leaving: Leaving, **fields: Any) -> Manner:
    return Manner(leaving=leaving, **fields)


def _case(
    what: str,
    title: str,
    manner: Manner,
    *,
    copies: int = 1,
    is_seen: bool = False,
    needs: tuple[Capability, ...] = (),
    **ask: Any,
) -> Case:
    """A case of clients that leave and metrics that fall back. `is_seen`: metrics must show the work meanwhile."""
    body = ask.pop("body", None) or long_body(stream=True)
    gone = Ask(name="gone", wave=1, body=body, script=LONG_SCRIPT, manner=manner, copies=copies, **ask)
    settle_s = 0.8 if manner.leaving in (Leaving.AFTER_REQUEST, Leaving.HALF_REQUEST) else 0.0
    looks = (metrics_ask("during", 1, delay_s=0.8),) if is_seen else ()
    seen: tuple[Expect, ...] = (expect(was_running, "before", "during"),) if is_seen else ()
    return Case(
        id=f"cancellation.{what}",
        title=title,
        why=_WHY,
        clauses=("openai:http.closure",),
        severity=Severity.NUISANCE,
        needs=(Capability.CHAT, Capability.METRICS, *needs),
        asks=(rest_ask(), gone, *looks, back_ask(2, settle_s=settle_s), probe_ask("next", 3)),
        expects=(*seen, expect(is_back_to, "before", "after"), expect(is_whole_answer, "next")),
        turn=Turn.ALONE,
        tries=2,
    )


_STREAMS = (Capability.STREAMS,)

PHASES: tuple[Case, ...] = (
    _case(
        "after_request",
        "A client that leaves right after its request leaves no work behind",
        _leaving(Leaving.AFTER_REQUEST),
        needs=_STREAMS,
    ),
    _case(
        "in_half_of_the_body",
        "A client that leaves in the middle of its request leaves nothing behind",
        _leaving(Leaving.HALF_REQUEST),
        copies=4,
    ),
    _case(
        "after_head",
        "A client that leaves when the status has come leaves no work behind",
        _leaving(Leaving.AFTER_HEAD),
        needs=_STREAMS,
    ),
    _case(
        "after_first_event",
        "A client that leaves after the first event leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=1),
        needs=_STREAMS,
    ),
    _case(
        "in_the_stream",
        "A client that leaves in the middle of a stream leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=12),
        needs=_STREAMS,
    ),
    _case(
        "reset_in_the_stream",
        "A client whose connection is reset in the middle of a stream leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=6, with_reset=True),
        needs=_STREAMS,
    ),
    _case(
        "reset_after_request",
        "A client that resets its connection right after its request leaves no work behind",
        _leaving(Leaving.AFTER_REQUEST, with_reset=True),
    ),
    _case(
        "while_streaming",
        "A stream whose client leaves after a while is no longer among the running requests",
        _AFTER_A_WHILE,
        is_seen=True,
        needs=_STREAMS,
    ),
    _case(
        "whole_answer",
        "A client that does not wait for a whole answer leaves no work behind",
        _AFTER_A_WHILE,
        is_seen=True,
        body=long_body(),
    ),
    _case(
        "reset_whole_answer",
        "A client that resets its connection while it waits for a whole answer leaves no work behind",
        Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=1.5, with_reset=True),
        is_seen=True,
        body=long_body(),
    ),
    _case(
        "all_choices",
        "All choices of a client that has left end, not only the first",
        _leaving(Leaving.AFTER_EVENTS, events=8),
        needs=(Capability.STREAMS, Capability.CHOICES),
        body=long_body(stream=True, n=4, temperature=1),
    ),
    _case(
        "all_choices_whole",
        "All choices of a whole answer that nobody waits for end",
        _AFTER_A_WHILE,
        is_seen=True,
        needs=(Capability.CHOICES,),
        body=long_body(n=4, temperature=1),
    ),
    _case(
        "completions_stream",
        "A streamed completion whose client leaves ends",
        _leaving(Leaving.AFTER_EVENTS, events=6),
        needs=(Capability.COMPLETIONS,),
        path="/completions",
        body=completion_body(LONG_QUESTION, max_tokens=400, stream=True),
    ),
    _case(
        "batch_of_prompts",
        "All prompts of a batch end when its client leaves",
        _AFTER_A_WHILE,
        is_seen=True,
        needs=(Capability.COMPLETIONS,),
        path="/completions",
        body=completion_body([f"{number}. {LONG_QUESTION}" for number in range(4)], max_tokens=300),
    ),
    _case(
        "many_streams",
        "Sixteen clients that leave at once leave no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=4),
        copies=16,
        needs=_STREAMS,
    ),
    _case(
        "many_resets",
        "Sixteen connections that are reset at once leave no work behind",
        Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=1.0, with_reset=True),
        copies=16,
        body=long_body(),
    ),
    _case(
        "queued",
        "Requests that still wait for their turn leave the queue with their clients",
        Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=1.2),
        copies=48,
        is_seen=True,
        body=long_body(max_tokens=200),
    ),
)

_BUSY = {"pieces": ["31"], "repeat": 4, "prefill_delay_s": 0.6}


def _timed(what: str, title: str, body: dict[str, Any], manner: Manner) -> Case:
    """A case without metrics: the same probe alone, beside eight requests, and three times after they have left."""
    load = Ask(name="gone", wave=1, copies=8, body=body, script=LONG_SCRIPT, manner=manner)
    after = tuple(probe_ask(name, wave) for name, wave in (("first", 2), ("second", 3), ("third", 4)))
    return Case(
        id=f"cancellation.{what}",
        title=title,
        why=_WHY,
        clauses=("openai:http.closure",),
        severity=Severity.NUISANCE,
        needs=(Capability.CHAT,),
        asks=(probe_ask("alone", 0), load, probe_ask("beside", 1, delay_s=0.8, script=_BUSY), *after),
        expects=(expect(has_quickened, "alone", "beside", "first", "second", "third"),),
        turn=Turn.ALONE,
        tries=2,
    )


TIMED: tuple[Case, ...] = (
    _timed(
        "time_of_streams",
        "After eight streams are left, a request takes as long as before",
        long_body(max_tokens=600, stream=True),
        Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=2.5),
    ),
    _timed(
        "time_of_whole_answers",
        "After eight whole answers are given up, a request takes as long as before",
        long_body(max_tokens=600),
        Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=2.5),
    ),
)


def _exact(what: str, title: str, body: dict[str, Any], needs: tuple[Capability, ...] = ()) -> Case:
    """A case of our own promise: blocks too are back, and soon."""
    gone = Ask(name="gone", wave=1, copies=4, body=body, script=LONG_SCRIPT, manner=_AFTER_A_WHILE)
    return Case(
        id=f"cancellation.{what}",
        title=title,
        why="Blocks of the cache that nobody frees make the server refuse work, until it is restarted.",
        clauses=("tidegate:cancel.baseline",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT, Capability.METRICS, Capability.ADMIN, *needs),
        asks=(
            rest_ask(),
            gone,
            metrics_ask("during", 1, delay_s=0.8),
            back_ask(2, within_s=4.0, with_memory=True),
        ),
        expects=(expect(was_running, "before", "during"), expect(is_back_to, "before", "after", with_memory=True)),
        turn=Turn.ALONE,
        tries=2,
    )


EXACT: tuple[Case, ...] = (
    _exact("blocks_of_streams", "Blocks of streams that are left are free again", long_body(stream=True)),
    _exact("blocks_of_whole_answers", "Blocks of whole answers that are given up are free again", long_body()),
    _exact(
        "blocks_of_choices",
        "Blocks of all choices are free again when their client leaves",
        long_body(n=3, temperature=1),
        (Capability.CHOICES,),
    ),
)

CASES: tuple[Case, ...] = (*PHASES, *TIMED, *EXACT)
