"""From two sides to their differences. Pure.

Decides what counts as different: a value that varies between the runs of one side is compared as the set of what was
seen, and differs only where no value was seen on both sides. What a difference means is told by `RULES` and, for text,
by `greedy.py`. Does not know: which changes somebody declared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tidegate.conformance.diff.difference import Aspect, Difference, Meaning
from tidegate.conformance.diff.facts import Facts
from tidegate.conformance.diff.greedy import judge_texts
from tidegate.conformance.diff.logprobs import compare_logprobs
from tidegate.conformance.diff.side import Side
from tidegate.conformance.probing.probe_decisions import COULD_NOT_TELL
from tidegate.conformance.verdict import Outcome

LEFT = "LEFT"
WHOLE = "WHOLE"
TIMELY_STATUSES = frozenset((408, 429, 503, 504))
TIMELY = "what runs out first is decided by time"
"""Which limit, quota or deadline refuses a request may differ each time; the cases check that each says so rightly."""


class Rule(NamedTuple):
    """How one aspect of facts is compared. `of` returns a value that can stand in a set."""

    aspect: Aspect
    of: Callable[[Facts], Any]
    because: str


RULES = (
    Rule(Aspect.STATUS, lambda facts: facts.status, "clients raise another error, or none"),
    Rule(Aspect.ENDING, lambda facts: facts.ending, "a client sees another end of the response"),
    Rule(Aspect.CONTENT_TYPE, lambda facts: facts.content_type, "clients choose their reader by it"),
    Rule(Aspect.ERROR, lambda facts: facts.error, "clients branch on type, code and param"),
)
"""Compared for every exchange; a difference is a regression."""

ANSWER_RULES = (
    Rule(Aspect.FRAMING, lambda facts: facts.framing, "strict readers of event streams take offence"),
    Rule(Aspect.GRAMMAR, lambda facts: facts.grammar, "clients wait for chunks in this order"),
)
"""Compared for whole answers that ended alike."""


def compare(old: Side, new: Side, *, tolerance: float) -> list[Difference]:
    """Returns all differences. `tolerance`: of log-probabilities, in nats."""
    found = [*_ends(old, new), *_capabilities(old, new)]
    lost = {capability.value for capability in old.capabilities - new.capabilities}
    for case_id, case in old.cases.items():
        if case_id not in new.cases:
            continue
        if not lost.intersection(need.value for need in case.needs):
            found += _verdicts(case_id, old, new)
        for ask in case.asks:
            sides = old.facts(case_id, ask.name), new.facts(case_id, ask.name)
            if all(sides):
                found += _exchanges(case_id, ask.name, *sides, tolerance)
    return judge_texts(found, _num_greedy(old, new))


def _ends(old: Side, new: Side) -> Iterator[Difference]:
    if new.stopped and not old.stopped:
        because = "the old server answered to the end"
        yield Difference(Aspect.ENDING, Meaning.REGRESSION, "", "", "of the run", "whole", new.stopped, because)


def _capabilities(old: Side, new: Side) -> Iterator[Difference]:
    for capability in sorted(old.capabilities ^ new.capabilities, key=lambda capability: capability.value):
        is_lost = capability in old.capabilities
        words = (new if is_lost else old).absent.get(capability, "")
        if words.startswith(COULD_NOT_TELL):
            meaning, lack = Meaning.VARIATION, "not known"
        else:
            meaning, lack = (Meaning.REGRESSION if is_lost else Meaning.IMPROVEMENT), "not served"
        shown = ("served", lack) if is_lost else (lack, "served")
        because = words or ("no longer served" if is_lost else "served now")
        yield Difference(Aspect.CAPABILITY, meaning, "", "", capability.value, *shown, because)


_VERDICTS: dict[tuple[Outcome, Outcome], tuple[Meaning, str]] = {
    (Outcome.PASS, Outcome.FAIL): (Meaning.REGRESSION, "the case held"),
    (Outcome.PASS, Outcome.UNSUPPORTED): (Meaning.REGRESSION, "it is refused now"),
    (Outcome.UNSUPPORTED, Outcome.FAIL): (Meaning.REGRESSION, "it was refused honestly"),
    (Outcome.INCONCLUSIVE, Outcome.FAIL): (Meaning.REGRESSION, "it could not be told before, and is wrong now"),
    (Outcome.FAIL, Outcome.PASS): (Meaning.IMPROVEMENT, "the case did not hold"),
    (Outcome.FAIL, Outcome.UNSUPPORTED): (Meaning.IMPROVEMENT, "it is refused honestly now"),
    (Outcome.UNSUPPORTED, Outcome.PASS): (Meaning.IMPROVEMENT, "it was refused"),
}
_UNSURE = (Meaning.VARIATION, "one of the two could not be told")


def _verdicts(case_id: str, old: Side, new: Side) -> Iterator[Difference]:
    before, after = old.outcomes(case_id), new.outcomes(case_id)
    if before & after:
        return
    was, is_now = (min(found, key=lambda outcome: outcome.value) for found in (before, after))
    meaning, because = _VERDICTS.get((was, is_now), _UNSURE)
    words = new.first_words(case_id) or old.first_words(case_id)
    shown = f"{because}: {words}" if words else because
    yield Difference(Aspect.VERDICT, meaning, case_id, "", "", was.value, is_now.value, shown)


def _exchanges(
    case_id: str, ask: str, old: Sequence[Facts], new: Sequence[Facts], tolerance: float
) -> Iterator[Difference]:
    def differ(aspect: Aspect, meaning: Meaning, where: str, was: Any, is_now: Any, because: str) -> Difference:
        return Difference(aspect, meaning, case_id, ask, where, was, is_now, because)

    has_left = any(facts.ending == LEFT for facts in (*old, *new))
    is_silent = any(all(facts.status is None for facts in side) for side in (old, new))
    # Where we left, what came first is chance; where no answer came, its ending says so.
    for rule in (rule for rule in RULES if not (has_left if rule.aspect is Aspect.ENDING else is_silent)):
        if (pair := _disjoint(rule.of, old, new)) is not None:
            meaning, because = _meaning_of(rule, old, new)
            yield differ(rule.aspect, meaning, "", *pair, because)
    if is_silent or _disjoint(lambda facts: facts.status, old, new) is not None:
        return
    yield from (differ(*parts) for parts in _headers(old, new))
    if has_left or _disjoint(lambda facts: facts.ending, old, new) is not None:
        return  # of an answer that was cut, members and text are missing as chance has it
    if not _are_timely(old, new):
        yield from (differ(*parts) for parts in _shapes(old, new))
    old, new = _same_questions(old, new)
    if not old:
        return
    yield from (differ(*parts) for parts in _answers(old, new))
    for where, was, is_now, meaning, because in compare_logprobs(old, new, tolerance):
        yield differ(Aspect.LOGPROBS, meaning, where, was, is_now, because)


def _meaning_of(rule: Rule, old: Sequence[Facts], new: Sequence[Facts]) -> tuple[Meaning, str]:
    if rule.aspect is Aspect.ERROR and _are_timely(old, new):
        return Meaning.VARIATION, TIMELY
    if rule.aspect is Aspect.ENDING and all(facts.ending == WHOLE for facts in new):
        return Meaning.IMPROVEMENT, "the answer was not whole before"
    return Meaning.REGRESSION, rule.because


def _are_timely(old: Sequence[Facts], new: Sequence[Facts]) -> bool:
    return all(facts.status in TIMELY_STATUSES for facts in (*old, *new))


def _same_questions(old: Sequence[Facts], new: Sequence[Facts]) -> tuple[Sequence[Facts], Sequence[Facts]]:
    """Returns the facts of requests that were sent to both sides: what an answer says depends on the question, and a
    question may hold another seed's words, or what an earlier answer said.
    """
    common = {facts.request for facts in old} & {facts.request for facts in new}
    kept = [[facts for facts in side if facts.request in common] for side in (old, new)]
    return kept[0], kept[1]


Parts = tuple[Aspect, Meaning, str, Any, Any, str]


def _disjoint(of: Callable[[Facts], Any], old: Iterable[Facts], new: Iterable[Facts]) -> tuple[Any, Any] | None:
    """Returns a value of each side where none was seen on both."""
    before, after = [of(facts) for facts in old], [of(facts) for facts in new]
    return None if any(value in after for value in before) else (before[0], after[0])


def _headers(old: Sequence[Facts], new: Sequence[Facts]) -> Iterator[Parts]:
    before = frozenset.intersection(*(facts.headers for facts in old))
    ever = frozenset.union(*(facts.headers for facts in old))
    after = frozenset.intersection(*(facts.headers for facts in new))
    ever_after = frozenset.union(*(facts.headers for facts in new))
    for name in sorted(before - ever_after):
        yield Aspect.HEADER, Meaning.REGRESSION, name, "sent", "not sent", "clients and proxies read it"
    for name in sorted(after - ever):
        yield Aspect.HEADER, Meaning.ADDITION, name, "not sent", "sent", "a header more breaks nobody"


_OF_CALLS = ("tool_calls", "function_call")
"""Whether they are there depends on what the model said: `Aspect.CALLS`."""


def _shapes(old: Sequence[Facts], new: Sequence[Facts]) -> Iterator[Parts]:
    paths = {path for facts in (*old, *new) for path in facts.shape}
    for path in sorted(paths):
        if any(part in path for part in _OF_CALLS):
            continue
        before = [facts.shape.get(path, frozenset()) for facts in old]
        after = [facts.shape.get(path, frozenset()) for facts in new]
        was, is_now = frozenset.union(*before), frozenset.union(*after)
        parent_seen = any(_parent(path) in facts.shape for facts in new)
        if all(before) and not is_now and parent_seen:
            yield Aspect.SHAPE, Meaning.REGRESSION, path, _names(was), "missing", "clients read this member"
        elif all(after) and not was:
            if any(_parent(path) in facts.shape for facts in old):
                yield (
                    Aspect.SHAPE,
                    Meaning.ADDITION,
                    path,
                    "missing",
                    _names(is_now),
                    "clients skip what they do not know",
                )
        elif was and is_now and was.isdisjoint(is_now) and "null" not in was | is_now:
            yield Aspect.SHAPE, Meaning.REGRESSION, path, _names(was), _names(is_now), "typed clients fail to parse it"


def _parent(path: str) -> str:
    return path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]


def _names(kinds: Iterable[str]) -> str:
    return " or ".join(sorted(kinds))


def _answers(old: Sequence[Facts], new: Sequence[Facts]) -> Iterator[Parts]:
    are_whole = all(facts.ending == WHOLE for facts in (*old, *new))
    for rule in ANSWER_RULES if are_whole else ():  # elsewhere the cut falls where it falls
        if (pair := _disjoint(rule.of, old, new)) is not None and not _is_by_text(rule.aspect, old, new):
            yield rule.aspect, Meaning.REGRESSION, "", *pair, rule.because
    prompt = _disjoint(lambda facts: facts.usage.get("prompt_tokens"), old, new)
    if prompt is not None and None not in prompt:
        why = "the same prompt has other tokens: template or tokenizer changed, and so does the bill"
        yield Aspect.PROMPT_TOKENS, Meaning.REGRESSION, "", *prompt, why
    for index in sorted({index for facts in old for index in facts.texts}):
        yield from _choice(index, old, new)


def _is_by_text(aspect: Aspect, old: Sequence[Facts], new: Sequence[Facts]) -> bool:
    """Whether another order of chunks only says that the model said something else."""
    return aspect is Aspect.GRAMMAR and _same_texts(old, new) is False


def _same_texts(old: Sequence[Facts], new: Sequence[Facts]) -> bool:
    return _disjoint(lambda facts: (facts.texts, facts.calls), old, new) is None


def _choice(index: int, old: Sequence[Facts], new: Sequence[Facts]) -> Iterator[Parts]:
    where = f"choices[{index}]"
    is_sampled = any(facts.is_sampled for facts in (*old, *new))
    text = _disjoint(lambda facts: facts.texts.get(index), old, new)
    calls = _disjoint(lambda facts: facts.calls.get(index), old, new)
    for aspect, pair in ((Aspect.TEXT, text), (Aspect.CALLS, calls)):
        if pair is not None:
            because = "sampled" if is_sampled else "greedy"
            yield aspect, Meaning.VARIATION, where, *pair, because
    finish = _disjoint(lambda facts: facts.finishes.get(index), old, new)
    if finish is not None:
        meaning = Meaning.REGRESSION if text is None and calls is None else Meaning.VARIATION
        because = "the same text ends for another reason" if text is None else "another text ends otherwise"
        yield Aspect.FINISH, meaning, where, *finish, because
    counted = _disjoint(lambda facts: facts.usage.get("completion_tokens"), old, new)
    if index == 0 and counted is not None and None not in counted and _same_texts(old, new):
        yield Aspect.COMPLETION_TOKENS, Meaning.REGRESSION, "", *counted, "the same text is billed otherwise"


def _num_greedy(old: Side, new: Side) -> int:
    """How many greedy texts can be compared."""
    return sum(
        1
        for case_id, case in old.cases.items()
        for ask in case.asks
        if any(f.texts and not f.is_sampled for f in old.facts(case_id, ask.name))
        and any(f.texts and not f.is_sampled for f in new.facts(case_id, ask.name))
    )
