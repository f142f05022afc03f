"""Several choices in one answer."""

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import both_ways, completions_ask, generated, streamed
from tidegate.conformance.checks.choices import are_drawn_each, are_same, has_indices
from tidegate.conformance.checks.same_answer import has_same_answer
from tidegate.conformance.checks.stream_order import finishes_once, tells_role_first
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT, Capability.CHOICES)
_STREAMS = (*_CHAT, Capability.STREAMS)
_DRAWN = chat_body(n=3, temperature=2, max_tokens=32, logprobs=True, top_logprobs=1)
_DRAWN_SCRIPT = {
    "choices": [
        {"pieces": [text.encode().hex() for text in words], "logprobs": [-9.0] * len(words)}
        for words in (("red", ", blue"), ("tan", ", pink"), ("grey", ", lime"))
    ]
}
"""The scripted engine does not sample: its choices are written out."""

CASES: tuple[Case, ...] = (
    Case(
        id="choices.one",
        title="Without n there is exactly one choice, with index 0",
        why="Clients take choices[0] for the answer.",
        clauses=("openai:choices.n",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body()),),
        expects=(*generated(), expect(has_indices, num_choices=1)),
    ),
    Case(
        id="choices.indices",
        title="n = 3 gives the choices 0, 1 and 2, each once",
        why="Clients that asked for three read past the end of the list.",
        clauses=("openai:choices.n",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body(n=3, temperature=1), is_refusable=True),),
        expects=(*generated(), expect(has_indices, num_choices=3)),
    ),
    Case(
        id="choices.streamed",
        title="Streamed, each of the choices has its own index, role and finish_reason",
        why="The texts of all choices run into one.",
        clauses=("openai:choices.n", "openai:stream.finish_once", "openai:stream.role"),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT, Capability.STREAMS),
        asks=(Ask(body=streamed(chat_body(n=3, temperature=1)), is_refusable=True),),
        expects=(*generated(), expect(has_indices, num_choices=3), expect(finishes_once), expect(tells_role_first)),
    ),
    Case(
        id="choices.completions",
        title="n = 2 gives the choices 0 and 1 of a completion, whole and streamed",
        why="Clients that asked for two read past the end of the list.",
        clauses=("openai:choices.n",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.COMPLETIONS, Capability.STREAMS),
        asks=(
            completions_ask(completion_body("One, two,", n=2, temperature=1), is_refusable=True),
            completions_ask(
                streamed(completion_body("One, two,", n=2, temperature=1)), name="streamed", is_refusable=True
            ),
        ),
        expects=(
            *generated("it", "streamed"),
            expect(has_indices, num_choices=2),
            expect(has_indices, "streamed", num_choices=2),
            expect(finishes_once, "streamed"),
        ),
    ),
    Case(
        id="choices.greedy_same",
        title="At temperature 0 all choices say the same, whole and streamed",
        why="What was asked for as the likeliest answer is one of several, or tokens went to the wrong choice.",
        clauses=("openai:choices.n", "openai:stream.as_whole"),
        severity=Severity.WRONG_DATA,
        needs=_STREAMS,
        asks=(
            Ask(name="whole", body=chat_body(n=3, max_tokens=8), is_refusable=True),
            Ask(name="again", body=chat_body(n=3, max_tokens=8), is_refusable=True, wave=1),
            Ask(body=streamed(chat_body(n=3, max_tokens=8)), is_refusable=True, wave=2),
        ),
        expects=(*generated("whole", "again", "it"), expect(are_same, "whole", "again", "it")),
        turn=Turn.ALONE,
    ),
    Case(
        id="choices.own_text",
        title="The text of each choice stays its own when the choices are streamed side by side",
        why="Words of one choice turn up in another.",
        clauses=("openai:choices.n", "openai:stream.as_whole"),
        severity=Severity.WRONG_DATA,
        needs=(*_STREAMS, Capability.SCRIPT),
        asks=both_ways(chat_body(n=3, temperature=1), script=_DRAWN_SCRIPT),
        expects=(*generated("whole", "it"), expect(has_same_answer, "whole", "it")),
    ),
    Case(
        id="choices.drawn_each",
        title="Sampled choices are drawn each for itself, and are not copies of one",
        why="Votes over several answers are votes over one.",
        clauses=("openai:choices.n",),
        severity=Severity.WRONG_DATA,
        needs=(*_CHAT, Capability.LOGPROBS),
        asks=(Ask(body=_DRAWN, script=_DRAWN_SCRIPT, is_refusable=True),),
        expects=(*generated(), expect(are_drawn_each)),
        tries=3,
    ),
)
