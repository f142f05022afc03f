"""Completions as a whole: the object, prompts in all their forms, echo, the token limit."""

from tidegate.conformance.case import Case, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import completion_body
from tidegate.conformance.catalog.openers import completions_ask, generated, streamed
from tidegate.conformance.checks.choices import has_indices
from tidegate.conformance.checks.prompts import echoes, echoes_only, numbers_prompts, reads_or_refuses
from tidegate.conformance.checks.same_answer import is_like_repeated
from tidegate.conformance.checks.shape import completion_members, completion_nullable_members
from tidegate.conformance.checks.usage import counts_prompt_tokens, is_cut_at
from tidegate.conformance.probing.capability import Capability

_COMPLETIONS = (Capability.COMPLETIONS,)
_TEXT = "The colours of the rainbow are red,"
_TEXTS = ("One, two, three,", "Monday, Tuesday,")
_IDS = (70, 71, 72, 73, 74)
"""Token ids that every vocabulary has; what they mean does not matter."""

CASES: tuple[Case, ...] = (
    Case(
        id="completions.object",
        title="A completion has every member that carries something, with its type and one of its values",
        why="Typed clients refuse an answer that lacks a member or has another type in its place.",
        clauses=("openai:completions.object",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_COMPLETIONS,
        asks=(completions_ask(completion_body(_TEXT)),),
        expects=(*generated(), expect(completion_members)),
    ),
    Case(
        id="completions.nullable_members",
        title="Each choice of a completion has logprobs, null where they were not asked for",
        why="Clients made from the schema read it without asking whether it is there.",
        clauses=("openai:completions.object",),
        severity=Severity.NUISANCE,
        needs=_COMPLETIONS,
        asks=(completions_ask(completion_body(_TEXT)),),
        expects=(*generated(), expect(completion_nullable_members)),
    ),
    Case(
        id="completions.max_tokens",
        title="max_tokens cuts a completion at exactly that many tokens, with finish_reason length",
        why="Answers cost more than their caller allowed, or are cut without saying so.",
        clauses=("openai:completions.max_tokens",),
        severity=Severity.WRONG_BILL,
        needs=_COMPLETIONS,
        asks=(completions_ask(completion_body(_TEXT, max_tokens=5)),),
        expects=(*generated(), expect(is_cut_at, num_tokens=5)),
        tries=2,
    ),
    Case(
        id="completions.prompts",
        title="A list of prompts gives one choice for each, numbered in order",
        why="A batch comes back with fewer answers than questions, and nobody knows which are missing.",
        clauses=("openai:completions.prompts",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(completions_ask(completion_body([*_TEXTS, _TEXT], max_tokens=4), is_refusable=True),),
        expects=(*generated(), expect(has_indices, num_choices=3)),
    ),
    Case(
        id="completions.prompt_order",
        title="Choice j of prompt i has index i * n + j",
        why="Answers are put to other questions than theirs.",
        clauses=("openai:completions.prompts",),
        severity=Severity.WRONG_DATA,
        needs=(*_COMPLETIONS, Capability.ECHO, Capability.CHOICES, Capability.PROMPT_LISTS),
        asks=(completions_ask(completion_body(list(_TEXTS), max_tokens=3, n=2, echo=True), is_refusable=True),),
        expects=(*generated(), expect(has_indices, num_choices=4), expect(numbers_prompts)),
    ),
    Case(
        id="completions.token_prompts",
        title="A list of lists of token ids gives one choice for each list",
        why="Evaluations send prompts as ids; flattened into one, they all give one wrong answer.",
        clauses=("openai:completions.prompts",),
        severity=Severity.WRONG_DATA,
        needs=(*_COMPLETIONS, Capability.TOKEN_PROMPTS),
        asks=(completions_ask(completion_body([list(_IDS[:3]), list(_IDS[3:])], max_tokens=3), is_refusable=True),),
        expects=(*generated(), expect(has_indices, num_choices=2)),
    ),
    Case(
        id="completions.token_prompt_exact",
        title="A prompt of token ids is taken as it is: nothing is added",
        why="Log-likelihoods of evaluations shift when a token is put before the prompt.",
        clauses=("tidegate:parameters.token_prompts",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_COMPLETIONS, Capability.TOKEN_PROMPTS),
        asks=(completions_ask(completion_body(list(_IDS), max_tokens=3)),),
        expects=(*generated(), expect(counts_prompt_tokens, num_tokens=len(_IDS))),
    ),
    Case(
        id="completions.echo",
        title="With echo the text begins with the prompt, character for character",
        why="Clients cut the prompt off by its length and lose or keep characters of the answer.",
        clauses=("openai:completions.echo",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(
            completions_ask(completion_body("two  spaces, and\n\na line", max_tokens=3, echo=True), is_refusable=True),
        ),
        expects=(*generated(), expect(echoes)),
    ),
    Case(
        id="completions.echo_streamed",
        title="A streamed echo is the same text as a whole one",
        why="The prompt is missing, or comes twice, as soon as the answer is streamed.",
        clauses=("openai:completions.echo", "openai:stream.completions"),
        severity=Severity.WRONG_DATA,
        needs=(*_COMPLETIONS, Capability.ECHO, Capability.STREAMS),
        asks=(
            completions_ask(completion_body(_TEXT, max_tokens=4, echo=True), name="whole", is_refusable=True),
            completions_ask(completion_body(_TEXT, max_tokens=4, echo=True, stream=False), name="again", wave=1),
            completions_ask(streamed(completion_body(_TEXT, max_tokens=4, echo=True)), wave=2, is_refusable=True),
        ),
        expects=(*generated("whole", "again", "it"), expect(is_like_repeated, "whole", "again", "it")),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="completions.echo_alone",
        title="With echo and no tokens to generate the text is the prompt alone",
        why="Evaluations ask so for the log-probabilities of a text, and get a longer one.",
        clauses=("tidegate:parameters.zero_tokens",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_COMPLETIONS, Capability.ECHO),
        asks=(completions_ask(completion_body(_TEXT, max_tokens=0, echo=True)),),
        expects=(*generated(), expect(echoes_only)),
    ),
    Case(
        id="completions.suffix",
        title="suffix is read, or honestly refused",
        why="An editor that fills in code gets text that does not fit what follows, and takes it for the model's best.",
        clauses=("openai:completions.suffix",),
        severity=Severity.WRONG_DATA,
        needs=_COMPLETIONS,
        asks=(
            completions_ask(completion_body(_TEXT, max_tokens=3), name="plain"),
            completions_ask(completion_body(_TEXT, max_tokens=3, suffix=" and violet, which is the last of them.")),
        ),
        expects=(*generated("plain"), expect(reads_or_refuses, "plain", "it", field="suffix")),
    ),
)
