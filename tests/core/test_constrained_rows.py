"""Masks and machines of one step: where a constraint begins, what drafts may be, what ends a sequence."""

import numpy as np
import pytest

from tidegate.core.backend import StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import TokenTable
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarRule, GrammarSpec, RegexSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.requests import make_request

EOS = 256
TABLE = TokenTable([bytes([i]) for i in range(256)] + [b"<eos>"], frozenset({EOS}), (EOS,))
THINK_END = (ord("/"), ord("t"))
COMPILER = make_compiler(TABLE)


def constrained(
    spec: GrammarSpec,
    *,
    after: tuple[tuple[int, ...], ...] = (),
    sampling: SamplingParams | None = None,
    stop: StopRules | None = None,
) -> InferenceRequest:
    sampling = sampling or SamplingParams(temperature=0.0)
    return make_request("r", "p", grammar=GrammarRule(spec, after), sampling=sampling, stop=stop or StopRules(64))


def order_of(spec: GrammarSpec) -> GrammarOrder:
    return GrammarOrder(COMPILER.compile(spec))


def make_rows(max_sequences: int = 2, max_draft_tokens: int = 4) -> GrammarRows:
    return GrammarRows(make_compiler(TABLE), GrammarShape(max_sequences, max_draft_tokens, len(TABLE.tokens), (EOS,)))


def allowed(rows: GrammarRows, key: int, place: int = 0) -> bytes:
    """What may come, `$` for the end token; both ways to ask agree."""
    values = np.zeros(len(TABLE.tokens), np.float32)
    rows.forbid(key, values, place)
    ids = np.flatnonzero(np.isfinite(values)).tolist()
    assert ids == [i for i in range(len(TABLE.tokens)) if rows.allows(key, i, place)]
    return bytes(ord("$") if i == EOS else i for i in ids)


class Chain:
    """A sampler over one sequence, whose model always prefers the same tokens."""

    def __init__(self, request: InferenceRequest, order: GrammarOrder | None, likes: bytes = b"") -> None:
        self.rows = make_rows(2, 0)
        self.chain = SamplerChain(len(TABLE.tokens), (EOS,), self.rows)
        self.chain.open(1, request, 0, order)
        self.values = np.zeros((1, len(TABLE.tokens)), np.float32)
        for rank, token_id in enumerate(likes):
            self.values[0, token_id] = 50.0 - rank
        self.num_generated = 0

    def next(self) -> Chosen:
        [chosen] = self.chain.choose([ChooseRow(1, 0, self.num_generated)], StepLogits([(0, 0)], self.values))
        self.num_generated += len(chosen.token_ids)
        return chosen

    def run(self, limit: int = 100) -> tuple[bytes, Chosen]:
        text: list[int] = []
        for _ in range(limit):
            chosen = self.next()
            text += chosen.token_ids
            if chosen.finish is not None or EOS in chosen.token_ids:
                return bytes(ord("$") if i == EOS else i for i in text), chosen
        raise AssertionError(f"never ends: {text}")


def test_the_last_token_of_a_text_that_nothing_can_follow_ends_the_sequence() -> None:
    text, chosen = Chain(constrained(ChoiceSpec(("no",))), order_of(ChoiceSpec(("no",)))).run()
    assert (text, chosen.finish) == (b"no", EngineFinish.GRAMMAR_COMPLETE)


def test_a_text_that_can_go_on_ends_when_the_model_says_so() -> None:
    spec = RegexSpec("a+")
    chain = Chain(constrained(spec), order_of(spec), likes=b"a")
    assert [chain.next().token_ids for _ in range(3)] == [[97]] * 3
    chain.values[0, EOS] = 99.0
    assert chain.next().token_ids == [EOS]


def test_a_grammar_that_allows_nothing_but_the_empty_text_ends_without_a_token() -> None:
    text, chosen = Chain(constrained(RegexSpec("")), order_of(RegexSpec(""))).run()
    assert (text, chosen.finish) == (b"", EngineFinish.GRAMMAR_COMPLETE)


def test_min_tokens_does_not_hold_a_complete_grammar_open() -> None:
    request = constrained(ChoiceSpec(("no",)), stop=StopRules(64, min_tokens=9))
    assert Chain(request, order_of(ChoiceSpec(("no",)))).run()[0] == b"no"


def test_min_tokens_keeps_a_text_going_that_can_go_on() -> None:
    spec = RegexSpec("a{1,9}")
    text, chosen = Chain(constrained(spec, stop=StopRules(64, min_tokens=5)), order_of(spec), likes=b"ba").run()
    assert (text, chosen.finish) == (b"a" * 9, EngineFinish.GRAMMAR_COMPLETE)


def test_with_ignore_eos_the_end_token_is_no_way_out_of_a_grammar() -> None:
    spec = RegexSpec("a{1,4}")
    chain = Chain(constrained(spec, stop=StopRules(64, ignore_eos=True)), order_of(spec))
    chain.values[0, EOS] = 99.0
    assert chain.run()[0] == b"aaaa"


# what else forbids tokens, and the text up to the dead end
DEAD_ENDS: list[tuple[str, SamplingParams, StopRules, bytes]] = [
    ("allowed_token_ids", SamplingParams(temperature=0.0, allowed_token_ids=(ord("n"),)), StopRules(9), b"n"),
    ("bad_words", SamplingParams(temperature=0.0, bad_words=((ord("o"),),)), StopRules(9), b"n"),
    ("sampled", SamplingParams(temperature=1.0, bad_words=((ord("n"), ord("o")),)), StopRules(9), b"n"),
    ("min_tokens", SamplingParams(temperature=0.0), StopRules(9, token_ids=(ord("o"),), min_tokens=5), b"n"),
]


@pytest.mark.parametrize(("name", "sampling", "stop", "text"), DEAD_ENDS, ids=[case[0] for case in DEAD_ENDS])
def test_a_grammar_and_what_else_is_forbidden_can_leave_nothing(
    name: str, sampling: SamplingParams, stop: StopRules, text: bytes
) -> None:
    request = constrained(ChoiceSpec(("no", "now")), sampling=sampling, stop=stop)
    found, chosen = Chain(request, order_of(ChoiceSpec(("no", "now")))).run()
    assert (found, chosen.finish, chosen.error) == (text, EngineFinish.GRAMMAR_DEAD_END, None)


def test_an_empty_mask_alone_is_a_dead_end() -> None:
    table = TokenTable([b"a", b"b", b"<eos>"], frozenset({2}), (2,))
    compiler = make_compiler(table)
    chain = SamplerChain(3, (2,), GrammarRows(compiler, GrammarShape(1, 0, 3, (2,))))
    spec = ChoiceSpec(("ax",))
    chain.open(1, constrained(spec), 0, GrammarOrder(compiler.compile(spec)))
    logits = StepLogits([(0, 0)], np.zeros((1, 3), np.float32))
    assert chain.choose([ChooseRow(1, 0, 0)], logits)[0].token_ids == [0]
    [chosen] = chain.choose([ChooseRow(1, 0, 1)], logits)
    assert (chosen.token_ids, chosen.finish) == ([], EngineFinish.GRAMMAR_DEAD_END)


def test_without_a_grammar_nothing_left_stays_a_failure() -> None:
    sampling = SamplingParams(temperature=0.0, allowed_token_ids=(97,), bad_words=((97,),))
    chosen = Chain(make_request("r", "p", sampling=sampling), None).next()
    assert (chosen.token_ids, chosen.finish) == ([], EngineFinish.FAILED)


def test_no_bias_lifts_a_forbidden_token() -> None:
    sampling = SamplingParams(temperature=0.0, logit_bias=((ord("x"), 100.0), (EOS, 100.0)))
    assert Chain(constrained(ChoiceSpec(("no",)), sampling=sampling), order_of(ChoiceSpec(("no",)))).run()[0] == b"no"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_log_probabilities_are_the_models_own(temperature: float) -> None:
    request = make_request(
        "r",
        "p",
        grammar=GrammarRule(ChoiceSpec(("no",))),
        sampling=SamplingParams(temperature=temperature),
        num_logprobs=2,
    )
    [entry] = Chain(request, order_of(ChoiceSpec(("no",))), likes=b"xy").next().logprobs or []
    assert entry.token_id == ord("n")
    assert entry.logprob < -40.0
    assert [token_id for token_id, _ in entry.top] == [ord("x"), ord("y")]


# a grammar that is no grammar here, and what the sequence's error says
FAULTS = [
    (GrammarOrder(GrammarRefusal(RefusalKind.UNSUPPORTED_SCHEMA, "not this", "/a/not")), "at /a/not: not this"),
    (None, "enforces no grammars"),
]


@pytest.mark.parametrize(("order", "error"), FAULTS, ids=[error for _, error in FAULTS])
def test_a_grammar_that_cannot_be_enforced_fails_its_sequence(order: GrammarOrder | None, error: str) -> None:
    chosen = Chain(constrained(ChoiceSpec(("no",))), order).next()
    assert chosen.finish is EngineFinish.FAILED
    assert error in str(chosen.error)


def test_until_its_start_the_text_is_free_but_cannot_end() -> None:
    spec = ChoiceSpec(("no",))
    for stop in (StopRules(64), StopRules(64, ignore_eos=True)):
        chain = Chain(constrained(spec, after=(THINK_END, (ord("!"),)), stop=stop), order_of(spec), likes=b"/")
        chain.values[0, EOS] = 99.0
        assert chain.next().token_ids == [ord("/")]
        chain.values[0, ord("t")] = 70.0
        assert chain.next().token_ids == [ord("t")]
        assert chain.run() == (b"no", Chosen([ord("o")], finish=EngineFinish.GRAMMAR_COMPLETE))


@pytest.mark.parametrize("num_kept", range(6))
def test_what_the_scheduler_takes_back_is_taken_back_here(num_kept: int) -> None:
    rows = make_rows()
    spec = RegexSpec("abcdef")
    rows.open(1, constrained(spec, after=(THINK_END,)), order_of(spec))
    history = [ord("x"), *THINK_END, *b"abc"]
    masks = []
    for i, token_id in enumerate(history):
        rows.fill([ChooseRow(1, 0, i)])
        masks.append(allowed(rows, 1))
        rows.record(1, token_id)
    rows.fill([ChooseRow(1, 0, num_kept)])
    assert allowed(rows, 1) == masks[num_kept]
    for i in range(num_kept, len(history)):
        rows.fill([ChooseRow(1, 0, i)])
        assert allowed(rows, 1) == masks[i]
        rows.record(1, history[i])
    rows.fill([ChooseRow(1, 0, len(history))])
    assert allowed(rows, 1) == b"d"


# where the sequence is, a draft, how many of it are legal, and what may come at each place up to there
FREE = bytes(range(256))
DRAFTS: list[tuple[bytes, bytes, int, list[bytes]]] = [
    (b"/t", b"abc", 3, [b"a", b"b", b"c", b"d"]),
    (b"/t", b"abx", 2, [b"a", b"b", b"c"]),
    (b"/t", b"x", 0, [b"a"]),
    (b"/tabcd", b"", 0, [b"e"]),
    (b"x", b"/tab", 4, [FREE, FREE, b"a", b"b", b"c"]),
    (b"x/", b"tb", 1, [FREE, b"a"]),
    (b"x", b"yz", 2, [FREE, FREE, FREE]),
    (b"x", b"y$/t", 1, [FREE, FREE]),
]


@pytest.mark.parametrize(("text", "draft", "num_legal", "masks"), DRAFTS, ids=[f"{c[0]!r}+{c[1]!r}" for c in DRAFTS])
def test_masks_stand_for_every_place_of_a_draft(text: bytes, draft: bytes, num_legal: int, masks: list[bytes]) -> None:
    rows = make_rows()
    spec = RegexSpec("abcdef")
    rows.open(1, constrained(spec, after=(THINK_END,)), order_of(spec))
    rows.open(2, constrained(ChoiceSpec(("q",))), order_of(ChoiceSpec(("q",))))
    for token_id in text:
        rows.record(1, token_id)
    draft_ids = [EOS if byte == ord("$") else byte for byte in draft]
    for _ in range(2):
        rows.fill([ChooseRow(2, 0, 0), ChooseRow(1, 1, len(text), draft_ids)])
        assert rows.num_legal(1) == num_legal
        assert [allowed(rows, 1, place) for place in range(num_legal + 1)] == masks
        assert allowed(rows, 2) == b"q"


def test_a_draft_beyond_a_start_waits_for_the_grammar() -> None:
    rows, order = make_rows(), GrammarOrder()
    rows.open(1, constrained(RegexSpec("ab"), after=(THINK_END,)), order)
    rows.fill([ChooseRow(1, 0, 0, [ord("x"), *THINK_END, ord("a")])])
    assert rows.num_legal(1) == 2
    assert rows.is_ready(1)
    for token_id in THINK_END:
        rows.record(1, token_id)
    assert not rows.is_ready(1)
    order.outcome = COMPILER.compile(RegexSpec("ab"))
    assert rows.is_ready(1)
    rows.fill([ChooseRow(1, 0, 2)])
    assert allowed(rows, 1) == b"a"


def test_a_closed_sequence_leaves_nothing_behind() -> None:
    rows = make_rows()
    rows.open(1, constrained(RegexSpec("ab")), order_of(RegexSpec("ab")))
    assert (len(rows), 1 in rows) == (1, True)
    rows.close(1)
    rows.close(1)
    assert (len(rows), 1 in rows) == (0, False)


def test_a_buffer_that_does_not_fit_the_vocabulary_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="mask buffer"):
        GrammarRows(make_compiler(TABLE), GrammarShape(2, 0, 4 * len(TABLE.tokens), (EOS,)))
