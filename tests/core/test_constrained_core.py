"""Constrained sequences through the whole core: what comes out fits, whatever happens to them, and to nobody else."""

import json

import jsonschema_rs
import pytest

from harness.constrained import SCHEMA, ConstrainedCore, constrained, make_core
from tidegate.backends.simulated import SimulatedModel, SimulatedShape
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, JsonSchemaSpec, RegexSpec
from tidegate.inference.sampling import SamplingParams
from tidegate.testing.requests import make_request

VALIDATOR = jsonschema_rs.validator_for(json.loads(SCHEMA))
ROOMY = SimulatedShape(max_sequences=16, num_blocks=4096)
TIGHT = SimulatedShape(max_sequences=4, num_blocks=40, block_tokens=4, max_step_tokens=16, max_model_len=160)
COMPLETE = (EngineFinish.GRAMMAR_COMPLETE, EngineFinish.EOS)


def assert_fits(core: ConstrainedCore, request_id: str, choice: int = 0) -> None:
    """Whole JSON that the schema allows, or a part of it where the budget ended it."""
    record = core.driver.records[request_id, choice]
    if record.finish is EngineFinish.LENGTH:
        return
    assert record.finish in COMPLETE, (record.finish, record.error)
    assert VALIDATOR.is_valid(json.loads(core.text(request_id, choice)))


def test_thousands_of_tokens_under_a_schema_are_nothing_but_valid_json() -> None:
    core = make_core(ROOMY)
    for number in range(60):
        seed = None if number % 3 == 0 else number
        core.driver.add(constrained(f"r{number}", prompt=f"p{number}", seed=seed))
    core.driver.run(max_steps=5000)
    core.assert_nothing_left()
    finishes = [record.finish for record in core.driver.records.values()]
    assert sum(finish in COMPLETE for finish in finishes) > 40
    assert core.driver.core.statistics().num_output_tokens > 4000
    for number in range(60):
        assert_fits(core, f"r{number}")


def test_sequences_that_are_preempted_write_what_they_would_have_written_alone() -> None:
    alone, crowded = make_core(ROOMY), make_core(TIGHT)
    requests = [constrained(f"r{i}", prompt=f"p{i}", seed=i or None, max_tokens=100) for i in range(6)]
    for core in (alone, crowded):
        core.driver.add(*requests)
        core.driver.run(max_steps=5000)
        core.assert_nothing_left()
    assert crowded.driver.core.statistics().num_preemptions > 0
    for key, record in crowded.driver.records.items():
        assert (record.token_ids, record.finish) == (
            alone.driver.records[key].token_ids,
            alone.driver.records[key].finish,
        )


def test_each_choice_of_a_request_has_its_own_machine() -> None:
    core = make_core(ROOMY)
    core.driver.add(constrained("r", seed=5, num_choices=6))
    core.driver.run()
    core.assert_nothing_left()
    assert len(core.desk.orders) == 1
    assert len({core.text("r", choice) for choice in range(6)}) == 6
    for choice in range(6):
        assert_fits(core, "r", choice)


def test_holds_and_aborts_in_the_middle_disturb_nobody() -> None:
    core, alone = make_core(ROOMY), make_core(ROOMY)
    requests = [constrained(f"r{i}", prompt=f"p{i}", seed=i + 1, num_choices=1 + i % 2) for i in range(6)]
    alone.driver.add(*requests)
    alone.driver.run()
    core.driver.add(*requests)
    for _ in range(10):
        core.driver.step()
    core.driver.abort("r0")
    core.driver.abort("r1", 1)
    core.driver.hold("r2", held=True)
    core.driver.run()
    core.driver.hold("r2", held=False)
    core.driver.run()
    core.assert_nothing_left()
    for key, record in core.driver.records.items():
        expected = alone.driver.records[key].token_ids
        if key in (("r0", 0), ("r1", 1)):
            assert record.finish is EngineFinish.ABORTED
            assert record.token_ids == expected[: len(record.token_ids)]
        else:
            assert record.token_ids == expected


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_unconstrained_neighbours_are_the_same_to_the_last_bit(temperature: float) -> None:
    mixed, alone = make_core(ROOMY), make_core(ROOMY)
    free = [
        make_request(
            f"f{i}",
            f"free {i}",
            max_tokens=60,
            num_logprobs=3,
            sampling=SamplingParams(temperature=temperature, seed=i, top_p=0.9),
        )
        for i in range(5)
    ]
    alone.driver.add(*free)
    alone.driver.run()
    for i, request in enumerate(free):
        mixed.driver.add(constrained(f"c{i}", prompt=f"c{i}", seed=i), request)
    mixed.driver.run()
    mixed.assert_nothing_left()
    for request in free:
        assert mixed.driver.records[request.request_id, 0] == alone.driver.records[request.request_id, 0]


def test_a_text_whose_last_token_the_budget_allows_is_complete_and_not_cut() -> None:
    core = make_core()
    core.driver.add(constrained("r", ChoiceSpec(("marker",)), max_tokens=6))
    core.driver.add(constrained("s", ChoiceSpec(("marker",)), max_tokens=5))
    core.driver.run()
    core.assert_nothing_left()
    assert core.driver.records["r", 0].finish is EngineFinish.GRAMMAR_COMPLETE
    assert core.driver.records["s", 0].finish is EngineFinish.LENGTH
    assert (core.text("r"), core.text("s")) == ("marker", "marke")


def test_a_sequence_reads_its_prompt_while_its_grammar_compiles_and_is_then_left_alone() -> None:
    core = make_core(SimulatedShape(max_step_tokens=64), is_slow=True)
    core.driver.add(constrained("slow", ChoiceSpec(("marker",)), prompt="p" * 100))
    core.driver.run()
    assert sum(plan.num_tokens for plan in core.driver.backend.plans) == 99
    assert core.driver.core.next_wake_at(core.driver.clock.now()) is None
    gauges = core.driver.core.statistics()
    assert (gauges.num_running, gauges.num_held, gauges.num_constrained) == (0, 1, 1)
    num_plans = len(core.driver.backend.plans)
    core.driver.add(make_request("free", "abc", max_tokens=9))
    core.driver.run()
    assert all(plan.num_tokens <= 3 for plan in core.driver.backend.plans[num_plans:])
    core.desk.deliver()
    core.driver.run()
    core.assert_nothing_left()
    assert core.text("slow") == "marker"


@pytest.mark.parametrize("prompt", ["p", "prompt"])
def test_a_sequence_that_waits_for_its_grammar_gives_way_to_whoever_needs_its_row(prompt: str) -> None:
    core = make_core(SimulatedShape(max_sequences=1), is_slow=True)
    core.driver.add(constrained("slow", ChoiceSpec(("marker",)), prompt=prompt, num_choices=2))
    core.driver.run()
    core.driver.add(make_request("free", "abc", max_tokens=9))
    core.driver.run()
    assert core.driver.records["free", 0].finish is EngineFinish.LENGTH
    core.desk.deliver()
    core.driver.run()
    core.assert_nothing_left()
    assert core.text("slow") == core.text("slow", 1) == "marker"


def test_a_free_beginning_is_written_while_the_grammar_compiles() -> None:
    core = make_core(model=SimulatedModel.SUCCESSOR, is_slow=True)
    core.driver.add(constrained("r", ChoiceSpec(("marker",)), prompt="a", after=(tuple(b"fg"),)))
    core.driver.run()
    assert core.text("r") == "bcdefg"
    core.desk.deliver()
    core.driver.run()
    core.assert_nothing_left()
    assert core.text("r") == "bcdefgmarker"


def test_a_grammar_that_does_not_compile_fails_its_request_and_nothing_else() -> None:
    core = make_core(ROOMY, is_slow=True)
    core.driver.add(constrained("bad", JsonSchemaSpec(b'{"$dynamicRef":"#a"}'), num_choices=2), constrained("good"))
    core.driver.run()
    core.desk.deliver()
    core.driver.run()
    core.assert_nothing_left()
    for choice in range(2):
        record = core.driver.records["bad", choice]
        assert (record.finish, record.token_ids) == (EngineFinish.FAILED, [])
        assert "/$dynamicRef" in str(record.error)
    assert_fits(core, "good")


def test_what_ends_before_its_grammar_is_there_is_not_waited_for() -> None:
    core = make_core(ROOMY, is_slow=True)
    core.driver.add(constrained("gone", num_choices=2), constrained("held", prompt="x"))
    core.driver.run()
    core.driver.hold("held", held=True)
    core.driver.abort("gone", 0)
    assert core.desk.orders[0][1].is_wanted
    core.driver.abort("gone")
    assert not core.desk.orders[0][1].is_wanted
    core.desk.deliver()
    core.driver.run()
    assert core.driver.records["held", 0].token_ids == []
    core.driver.hold("held", held=False)
    core.driver.run()
    core.assert_nothing_left()
    assert_fits(core, "held")


def test_a_request_without_output_needs_no_grammar() -> None:
    core = make_core(is_slow=True)
    core.driver.add(constrained("r", max_tokens=0))
    core.driver.run()
    core.assert_nothing_left()
    assert core.driver.records["r", 0].finish is EngineFinish.LENGTH


def test_the_model_says_who_enforces() -> None:
    core = make_core()
    assert core.driver.core.model.grammar_backend == core.desk.identity


def test_an_end_token_that_the_grammar_allows_ends_as_it_does_without_one() -> None:
    core = make_core(ROOMY)
    core.driver.add(*(constrained(f"r{i}", RegexSpec("[ab]*"), seed=i + 1, max_tokens=90) for i in range(12)))
    core.driver.run()
    core.assert_nothing_left()
    ended = [record for record in core.driver.records.values() if record.finish is EngineFinish.EOS]
    assert ended
    assert all(record.token_ids[-1] == 257 for record in ended)
