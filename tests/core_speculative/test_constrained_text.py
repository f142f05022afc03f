"""Guesses under a grammar: the same text, the same end, and no guess that the grammar forbids is ever fed."""

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import GrammarCompiler
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarRule, RegexSpec
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.manual_desk import ManualDesk
from tidegate.testing.requests import make_request

DRAFTS = 6
PROMPT = "the cat, the cat, the cat, "
RULES = {
    "a few words": RegexSpec(r"((the|a) (cat|dog), ){3,9}end"),
    "a word among its letters": RegexSpec(r"([ab]{4}-)*stop"),
    "choices that share a beginning": ChoiceSpec(("the cat, the cat, the cat", "the cat, the cat, the dog")),
    "one long text": ChoiceSpec(("the cat, the cat, the cat, the cat, the cat, the cat",)),
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "sampled": SamplingParams(temperature=0.8, seed=5),
    "penalised": SamplingParams(temperature=0.0, repetition_penalty=1.1, frequency_penalty=0.1),
}


def start(
    model: SimulatedModel, drafts: int, *, is_slow: bool = False
) -> tuple[CoreDriver, ManualDesk, GrammarRows, GrammarCompiler]:
    backend = SimulatedBackend(model, SimulatedShape(max_sequences=4, max_step_tokens=64))
    compiler = make_compiler(backend.token_table())
    caps = backend.caps
    rows = GrammarRows(compiler, GrammarShape(caps.max_sequences, DRAFTS, caps.vocab_size, caps.eos_token_ids))
    desk = ManualDesk(compiler, is_slow=is_slow)
    limits = StepLimits(max_draft_tokens=drafts)
    chain = SamplerChain(caps.vocab_size, caps.eos_token_ids, rows)
    return CoreDriver(backend, chain, limits=limits, grammars=desk, draft_filter=rows), desk, rows, compiler


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_constrained_text_is_the_same_with_and_without_guesses(rule: str, sampling: str) -> None:
    told = []
    for drafts in (0, DRAFTS):
        driver, *_ = start(SimulatedModel.REPEATING, drafts)
        for index in range(4):
            params = SAMPLINGS[sampling]
            fields = {"sampling": params, "num_choices": 1 + index % 2, "num_logprobs": 1 if index else None}
            stop = StopRules(max_tokens=60, min_tokens=index, ignore_eos=index == 3)
            grammar = GrammarRule(RULES[rule])
            driver.add(make_request(f"r{index}", PROMPT + "x" * index, stop=stop, grammar=grammar, **fields))  # type: ignore[arg-type]
        driver.run()
        driver.assert_at_rest()
        told.append([(r.token_ids, r.logprobs, r.finish, r.stop_token, r.error) for r in driver.records.values()])
    assert told[0] == told[1]


def test_a_text_that_the_grammar_dictates_takes_few_steps_and_ends_as_complete() -> None:
    driver, *_ = start(SimulatedModel.HISTORY, DRAFTS)
    rule = GrammarRule(RULES["one long text"])
    driver.add(make_request("r", PROMPT, max_tokens=200, grammar=rule))
    driver.run()
    record = driver.records["r", 0]
    assert bytes(record.token_ids) == b"the cat, the cat, the cat, the cat, the cat, the cat"
    assert record.finish is EngineFinish.GRAMMAR_COMPLETE
    gauges = driver.core.statistics()
    assert gauges.num_draft_tokens == gauges.num_accepted_tokens > 30
    assert gauges.num_steps < 15


def test_no_forbidden_guess_is_fed() -> None:
    """The prompt suggests `cat` each time; the grammar wants `dog`."""
    driver, *_ = start(SimulatedModel.HISTORY, DRAFTS)
    driver.add(make_request("r", PROMPT, max_tokens=200, grammar=GrammarRule(RegexSpec("(the dog, ){6}"))))
    driver.run()
    text = bytes(driver.records["r", 0].token_ids)
    assert text == b"the dog, " * 6
    fed = [bytes(row.draft_ids) for plan in driver.backend.plans for row in plan.decode if row.draft_ids]
    assert fed
    assert all(part in text for part in fed)
    assert driver.core.statistics().num_draft_tokens == driver.core.statistics().num_accepted_tokens


@pytest.mark.parametrize("drafts", [0, DRAFTS])
def test_a_constraint_that_begins_inside_a_run_of_guesses_holds_from_its_place(drafts: int) -> None:
    """Free text is guessed and accepted up to the start sequence `XY`; what follows obeys the grammar."""
    driver, desk, *_ = start(SimulatedModel.SUCCESSOR, drafts, is_slow=True)
    alphabet = "".join(chr(code) for code in range(65, 91))
    rule = GrammarRule(RegexSpec("[0-9]{5}"), starts_after=((ord("X"), ord("Y")),))
    driver.add(make_request("r", alphabet + "ABC", max_tokens=80, grammar=rule))
    for _ in range(60):
        driver.step()
    begun = bytes(driver.records["r", 0].token_ids)
    assert begun == alphabet[3:25].encode(), "no token was chosen without the grammar that it needs"
    desk.deliver()
    driver.run()
    record = driver.records["r", 0]
    text = bytes(record.token_ids)
    assert text[:22] == begun
    assert text[22:].isdigit()
    assert (len(text), record.finish) == (27, EngineFinish.GRAMMAR_COMPLETE)


def test_a_machine_is_where_its_sequence_is_after_guesses_were_rejected() -> None:
    _, desk, rows, _ = start(SimulatedModel.HISTORY, DRAFTS)
    request = make_request("r", PROMPT, grammar=GrammarRule(RegexSpec("[a-c]{6}")))
    assert request.grammar is not None
    order: GrammarOrder = desk.order(request.grammar.spec)
    rows.open(1, request, order)
    assert rows.legal_drafts(1, 0, list(b"abcabc")) == 6
    assert rows.legal_drafts(1, 0, list(b"abzabc")) == 2
    assert rows.legal_drafts(1, 0, list(b"abcabca")) == 6
    rows.record(1, ord("a"))
    rows.record(1, ord("b"))
    assert rows.legal_drafts(1, 2, list(b"ccccc")) == 4
    assert rows.legal_drafts(1, 1, list(b"cccccc")) == 5, "the second token was taken back"
    assert rows.legal_drafts(2, 0, list(b"zz")) == 2, "a sequence without a grammar may guess anything"
