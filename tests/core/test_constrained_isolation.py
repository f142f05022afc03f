"""No row ever sees another's mask: thousands of sequences, each with a grammar that only its own marker fits."""

import random

from harness.constrained import constrained, make_core
from tidegate.backends.simulated import SimulatedModel, SimulatedShape
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarSpec, JsonSchemaSpec, RegexSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.testing.core_driver import ChoiceRecord
from tidegate.testing.requests import make_request

NUM_REQUESTS = 10_000
IN_FLIGHT = 96
SHAPE = SimulatedShape(max_sequences=48, num_blocks=70, block_tokens=4, max_step_tokens=96, max_model_len=64)
FREE_TOKENS = 2


def marker(number: int) -> str:
    return f"{number:04x}"


def request_of(number: int, draw: random.Random) -> InferenceRequest:
    """A request whose text can only be its marker, by one of several kinds of grammar; every other one is free."""
    name, seed = marker(number), number if draw.random() < 0.5 else None
    if number % 2:
        sampling = SamplingParams(temperature=0.0 if seed is None else 1.0, seed=number)
        return make_request(name, name[-2:], max_tokens=FREE_TOKENS, sampling=sampling)
    specs: tuple[GrammarSpec, ...] = (
        ChoiceSpec((name,)),
        RegexSpec(name),
        JsonSchemaSpec(b'{"const":%d}' % number),
    )
    return constrained(name, specs[min(draw.randrange(12), 2)], prompt=name[-2:], seed=seed, max_tokens=9)


def assert_own(number: int, record: ChoiceRecord, text: str, request: InferenceRequest) -> None:
    if record.finish is EngineFinish.ABORTED:
        own = str(number) if isinstance_json(request) else marker(number)
        assert request.grammar is None or own.startswith(text)
    elif request.grammar is None:
        assert (record.finish, len(record.token_ids)) in ((EngineFinish.LENGTH, FREE_TOKENS), (EngineFinish.EOS, 1))
    else:
        assert text == (str(number) if isinstance_json(request) else marker(number))
        assert record.finish is EngineFinish.GRAMMAR_COMPLETE


def isinstance_json(request: InferenceRequest) -> bool:
    return request.grammar is not None and isinstance(request.grammar.spec, JsonSchemaSpec)


def test_no_sequence_ever_sees_anothers_mask() -> None:  # ISO-1
    draw = random.Random(11)
    core = make_core(SHAPE, model=SimulatedModel.SUCCESSOR)
    driver = core.driver
    requests: dict[str, InferenceRequest] = {}
    held: list[str] = []
    number = 0
    while number < NUM_REQUESTS or driver.core.has_work:
        gauges = driver.core.statistics()
        num_missing = max(0, IN_FLIGHT - gauges.num_waiting - gauges.num_running)
        for _ in range(min(num_missing, NUM_REQUESTS - number)):
            request = requests[marker(number)] = request_of(number, draw)
            driver.add(request)
            number += 1
        if draw.random() < 0.2:
            driver.abort(marker(draw.randrange(max(0, number - IN_FLIGHT), number)))
            held.append(marker(draw.randrange(max(0, number - IN_FLIGHT), number)))
            driver.hold(held[-1], held=True)
        if draw.random() < 0.1 or number == NUM_REQUESTS:
            while held:
                driver.hold(held.pop(), held=False)
        driver.step()
    core.assert_nothing_left()
    assert driver.core.statistics().num_preemptions > 0
    assert len(driver.records) == NUM_REQUESTS
    for index, (name, request) in enumerate(requests.items()):
        assert_own(index, driver.records[name, 0], core.text(name), request)
