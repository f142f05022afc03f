"""Laws of constrained sequences under any order of commands, steps, compilations and waits."""

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.constrained import ConstrainedCore, constrained, make_core
from tidegate.backends.simulated import SimulatedModel, SimulatedShape
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarSpec, JsonSchemaSpec, RegexSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.testing.core_driver import ChoiceRecord
from tidegate.testing.requests import make_request

REFUSED = JsonSchemaSpec(b'{"$dynamicRef":"#a"}')
SPECS: tuple[GrammarSpec | None, ...] = (
    ChoiceSpec(("abc", "abd", "x")),
    RegexSpec("[a-d]*"),
    JsonSchemaSpec(b'{"enum":[{"a":1},[true,null],"text"]}'),
    REFUSED,
    None,
)
SHAPES = st.builds(
    SimulatedShape,
    max_model_len=st.just(40),
    max_sequences=st.integers(1, 4),
    max_step_tokens=st.integers(4, 20),
    num_blocks=st.integers(10, 24),
    block_tokens=st.just(4),
    can_share=st.booleans(),
    can_truncate=st.booleans(),
)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "step", "step", "step", "run", "deliver", "abort", "hold")), st.integers(0, 7)
    ),
    max_size=30,
)


def request_of(request_id: str, number: int) -> InferenceRequest:
    """One of 40 requests: five grammars, greedy or sampled, one choice or two, at once or behind a start.

    What does not compile has no start: how far a sequence gets before it hears of that depends on when it does.
    """
    spec, variant = SPECS[number % 5], number // 5
    after = ((ord("!"),), (7, 8)) if variant >= 4 and spec != REFUSED else ()
    seed = number + 1 if variant % 2 else None
    if spec is None:
        sampling = SamplingParams(temperature=0.0 if seed is None else 1.0, seed=number)
        return make_request(request_id, [number, 5], max_tokens=9, sampling=sampling)
    return constrained(request_id, spec, prompt="pq"[: 1 + number % 2], seed=seed, max_tokens=14, after=after)


@cache
def alone(number: int) -> ChoiceRecord:
    core = make_core(SimulatedShape(max_model_len=40), model=SimulatedModel.HISTORY)
    core.driver.add(request_of("r", number))
    core.driver.run()
    return core.driver.records["r", 0]


def act_on(core: ConstrainedCore, act: str, number: int, numbers: list[int]) -> None:
    name = f"r{number % max(1, len(numbers))}"
    match act:
        case "add":
            numbers.append((number * 11 + len(numbers) * 7) % 40)
            core.driver.add(request_of(f"r{len(numbers) - 1}", numbers[-1]))
        case "step":
            core.driver.step()
        case "run":
            core.driver.run()
        case "deliver":
            core.desk.deliver(1 + number % 3)
        case "abort":
            core.driver.abort(name)
        case _:
            core.driver.hold(name, held=number % 2 == 0)


@given(SHAPES, ACTS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_sequence_gets_what_it_would_get_alone(
    shape: SimulatedShape, acts: list[tuple[str, int]], is_slow: bool
) -> None:
    core = make_core(shape, model=SimulatedModel.HISTORY, is_slow=is_slow)
    numbers: list[int] = []
    for act, number in acts:
        act_on(core, act, number, numbers)
    for index in range(len(numbers)):
        core.driver.hold(f"r{index}", held=False)
    core.driver.run()
    core.desk.deliver()
    core.driver.run()
    core.assert_nothing_left()
    for index, number in enumerate(numbers):
        record, expected = core.driver.records[f"r{index}", 0], alone(number)
        if record.finish is EngineFinish.ABORTED:
            assert record.token_ids == expected.token_ids[: len(record.token_ids)]
        else:
            assert (record.token_ids, record.finish, record.error) == (
                expected.token_ids,
                expected.finish,
                expected.error,
            )
