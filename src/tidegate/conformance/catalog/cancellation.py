"""Clients that go away: the work for them ends, and what it held is there for others."""

from dataclasses import replace
from typing import Any

from tidegate.conformance.ask import Ask, Leaving, Manner, Until
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
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
from tidegate.conformance.checks.load import (
    ends_with_its_client,
    has_quickened,
    is_back_to,
    is_busier,
    rests,
    was_running,
    work_is_still_due,
)
from tidegate.conformance.checks.whole_answer import is_whole_answer
from tidegate.conformance.probing.capability import Capability

_WHY = "Requests of clients that gave up keep their slots: the server computes for nobody and others wait."
_LONG = 1200
"""Tokens: enough that a fast machine too has not written them while we look."""
LONG_REST_S = 45.0
"""What an earlier case has left behind ends some time."""
LOOK_S, LOOK_AT_MANY_S = 4.5, 8.5
"""How long the work of clients that have left may still be seen."""
KEPT_S = 8.5
"""So much longer, at most, the request beside them is kept: until the looks begin."""
_SETTLE_S = 0.8
"""Work that nobody has seen yet may not have begun when its client leaves."""
_AFTER_A_WHILE = Manner(leaving=Leaving.AFTER_OTHERS, leave_after_s=2.5)
"""When metrics have shown the work."""
_RESET_AFTER_A_WHILE = replace(_AFTER_A_WHILE, with_reset=True)


def _leaving(leaving: Leaving, **fields: Any) -> Manner:
    return Manner(leaving=leaving, **fields)


def _long(**fields: Any) -> dict[str, Any]:
    return long_body(**{"max_tokens": _LONG} | fields)


def _long_completion(prompt: Any = LONG_QUESTION, **fields: Any) -> dict[str, Any]:
    return completion_body(prompt, max_tokens=_LONG, **fields)


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
    """A case of clients that leave beside one that stays until metrics have fallen back to it alone. `is_seen`: metrics
    must show the work of the others before they leave.
    """
    fields = {"path": "/chat/completions", "body": _long(stream=True)} | ask
    path = fields["path"]
    look_s = LOOK_S if copies == 1 else LOOK_AT_MANY_S
    kept_body = _long(stream=True) if path == "/chat/completions" else _long_completion(stream=True)
    staying = Manner(leaving=Leaving.AFTER_OTHERS, leave_after_s=KEPT_S + look_s)
    kept = Ask(
        name="kept", wave=1, path=path, body=kept_body, script=LONG_SCRIPT, is_endless=True, manner=staying, last_wave=3
    )
    is_up = Until(is_busier, within_s=2.2, every_s=0.1, of=("before",))
    is_down = Until(is_back_to, within_s=look_s, of=("beside",))
    return Case(
        id=f"cancellation.{what}",
        title=title,
        why=_WHY,
        clauses=("openai:http.closure",),
        severity=Severity.NUISANCE,
        needs=(Capability.CHAT, Capability.STREAMS, Capability.METRICS, *needs),
        asks=(
            rest_ask(within_s=LONG_REST_S),
            kept,
            metrics_ask("beside", 1, delay_s=0.25, until=is_up),
            Ask(name="gone", wave=2, script=LONG_SCRIPT, is_endless=True, manner=manner, copies=copies, **fields),
            *((_seen_ask("beside", 2),) if is_seen else ()),
            metrics_ask("after", 3, delay_s=0.0 if is_seen else _SETTLE_S, until=is_down),
            probe_ask("next", 4),
        ),
        expects=(
            expect(rests, "before"),
            *((expect(was_running, "beside", "during"),) if is_seen else ()),
            expect(ends_with_its_client, "before", "beside", "kept", "gone", "after"),
            expect(is_whole_answer, "next"),
        ),
        turn=Turn.ALONE,
        tries=2,
    )


def _seen_ask(before: str, wave: int) -> Ask:
    """Returns a look at metrics that waits until they show more than `before`."""
    return metrics_ask("during", wave, delay_s=0.5, until=Until(is_busier, within_s=1.5, every_s=0.1, of=(before,)))


_ALIKE = {"temperature": 1, "top_p": 0.01}
"""Choices that are as good as greedy: some servers refuse several choices at temperature 0. Three of them, and the one
that stays, fit a server of four slots, which may want slots for all choices at once.
"""

_IN_HALF = Case(
    id="cancellation.in_half_of_the_body",
    title="A client that leaves in the middle of its request leaves nothing behind",
    why=_WHY,
    clauses=("openai:http.closure",),
    severity=Severity.NUISANCE,
    needs=(Capability.CHAT, Capability.METRICS),
    asks=(
        rest_ask(),
        Ask(name="gone", wave=1, body=_long(stream=True), manner=_leaving(Leaving.HALF_REQUEST), copies=4),
        back_ask(2, settle_s=0.8),
        probe_ask("next", 3),
    ),
    expects=(
        expect(rests, "before"),
        expect(is_back_to, "before", "after"),
        expect(is_whole_answer, "next"),
    ),
    turn=Turn.ALONE,
    tries=2,
)
"""No work begins here: nothing needs to be kept beside it."""

PHASES: tuple[Case, ...] = (
    _case(
        "after_request",
        "A client that leaves right after its request leaves no work behind",
        _leaving(Leaving.AFTER_REQUEST),
    ),
    _IN_HALF,
    _case(
        "after_head",
        "A client that leaves when the status has come leaves no work behind",
        _leaving(Leaving.AFTER_HEAD),
    ),
    _case(
        "after_first_event",
        "A client that leaves after the first event leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=1),
    ),
    _case(
        "in_the_stream",
        "A client that leaves in the middle of a stream leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=6),
    ),
    _case(
        "reset_in_the_stream",
        "A client whose connection is reset in the middle of a stream leaves no work behind",
        _leaving(Leaving.AFTER_EVENTS, events=4, with_reset=True),
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
    ),
    _case(
        "whole_answer",
        "A client that does not wait for a whole answer leaves no work behind",
        _AFTER_A_WHILE,
        is_seen=True,
        body=_long(),
    ),
    _case(
        "reset_whole_answer",
        "A client that resets its connection while it waits for a whole answer leaves no work behind",
        _RESET_AFTER_A_WHILE,
        is_seen=True,
        body=_long(),
    ),
    _case(
        "all_choices",
        "All choices of a client that has left end, not only the first",
        _leaving(Leaving.AFTER_EVENTS, events=8),
        needs=(Capability.CHOICES,),
        body=_long(stream=True, n=3, **_ALIKE),
    ),
    _case(
        "all_choices_whole",
        "All choices of a whole answer that nobody waits for end",
        _AFTER_A_WHILE,
        is_seen=True,
        needs=(Capability.CHOICES,),
        body=_long(n=3, **_ALIKE),
    ),
    _case(
        "completions_stream",
        "A streamed completion whose client leaves ends",
        _leaving(Leaving.AFTER_EVENTS, events=6),
        needs=(Capability.COMPLETIONS,),
        path="/completions",
        body=_long_completion(stream=True),
    ),
    _case(
        "batch_of_prompts",
        "All prompts of a batch end when its client leaves",
        _AFTER_A_WHILE,
        is_seen=True,
        needs=(Capability.COMPLETIONS, Capability.PROMPT_LISTS),
        path="/completions",
        body=_long_completion([LONG_QUESTION] * 4),
    ),
    _case(
        "many_streams",
        "Sixteen clients that leave at once leave no work behind",
        _AFTER_A_WHILE,
        copies=16,
        is_seen=True,
    ),
    _case(
        "many_resets",
        "Sixteen connections that are reset at once leave no work behind",
        _RESET_AFTER_A_WHILE,
        copies=16,
        is_seen=True,
        body=_long(),
    ),
    _case(
        "queued",
        "Requests that still wait for their turn leave the queue with their clients",
        _AFTER_A_WHILE,
        copies=48,
        is_seen=True,
        body=_long(),
    ),
)

_BUSY = {"pieces": ["31"], "repeat": 4, "prefill_delay_s": 0.6}

_FOLLOWED = Manner(leaving=Leaving.AFTER_PAUSE, leave_after_s=8.0)
_FOLLOWED_SCRIPT = replace(_FOLLOWED, leave_after_s=4.0)
"""Probes of a scripted engine take no time."""


def _timed(what: str, title: str, body: dict[str, Any]) -> Case:
    """A case without metrics: the same probe alone, beside eight requests, and three times after they have left. The
    control, one such answer that is followed beforehand, shows that the work lasts longer than we look.
    """
    load = Ask(name="gone", wave=2, copies=8, body=body, script=LONG_SCRIPT, is_endless=True, manner=_AFTER_A_WHILE)
    after = tuple(probe_ask(name, wave) for name, wave in (("first", 3), ("second", 4), ("third", 5)))
    return Case(
        id=f"cancellation.{what}",
        title=title,
        why=_WHY,
        clauses=("openai:http.closure",),
        severity=Severity.NUISANCE,
        needs=(Capability.CHAT, Capability.STREAMS),
        asks=(
            Ask(
                name="control",
                body=body | {"stream": True},
                script=LONG_SCRIPT,
                is_endless=True,
                manner=_FOLLOWED,
                script_manner=_FOLLOWED_SCRIPT,
            ),
            probe_ask("alone", 1),
            load,
            probe_ask("beside", 2, delay_s=0.8, script=_BUSY),
            *after,
        ),
        expects=(
            expect(work_is_still_due, "control", "third", "gone"),
            expect(has_quickened, "alone", "beside", "first", "second", "third"),
        ),
        turn=Turn.ALONE,
        tries=2,
    )


TIMED: tuple[Case, ...] = (
    _timed(
        "time_of_streams",
        "After eight streams are left, a request takes as long as before",
        _long(stream=True),
    ),
    _timed(
        "time_of_whole_answers",
        "After eight whole answers are given up, a request takes as long as before",
        _long(),
    ),
)


def _exact(what: str, title: str, body: dict[str, Any], needs: tuple[Capability, ...] = ()) -> Case:
    """A case of our own promise: blocks too are back, and soon."""
    gone = Ask(name="gone", wave=1, copies=4, body=body, script=LONG_SCRIPT, is_endless=True, manner=_AFTER_A_WHILE)
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
            _seen_ask("before", 1),
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
