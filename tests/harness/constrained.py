"""A core over the simulated backend whose sampler masks with real machines."""

from dataclasses import dataclass

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.grammar_rows import GrammarRows
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.inference.grammar_spec import GrammarRule, GrammarSpec, JsonSchemaSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.manual_desk import ManualDesk, make_sampler
from tidegate.testing.requests import make_request

SCHEMA = (
    b'{"type":"object","properties":{"name":{"type":"string","maxLength":12},"tags":{"type":"array","items":'
    b'{"enum":["red","green",7,null]},"maxItems":6},"size":{"type":"integer","minimum":-50,"maximum":999},'
    b'"inner":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}},'
    b'"required":["name","tags","size","inner"],"additionalProperties":false}'
)


@dataclass(slots=True)
class ConstrainedCore:
    driver: CoreDriver
    desk: ManualDesk
    rows: GrammarRows

    def assert_nothing_left(self) -> None:
        self.driver.assert_at_rest()
        assert len(self.rows) == 0, "a machine was left behind"
        assert not any(order.is_wanted for _, order in self.desk.orders), "somebody still wants a grammar"

    def text(self, request_id: str, choice: int = 0) -> str:
        """What was generated, without the end token."""
        token_ids = self.driver.records[request_id, choice].token_ids
        return bytes(token_id for token_id in token_ids if token_id < 256).decode("utf-8", "replace")


def make_core(
    shape: SimulatedShape | None = None, *, model: SimulatedModel = SimulatedModel.HASH, is_slow: bool = False
) -> ConstrainedCore:
    backend = SimulatedBackend(model, shape)
    table = backend.token_table()
    compiler = make_compiler(table)
    desk = ManualDesk(compiler, is_slow=is_slow)
    sampler, rows = make_sampler(compiler, table, backend.caps.max_sequences)
    return ConstrainedCore(CoreDriver(backend, sampler, grammars=desk), desk, rows)


def constrained(
    request_id: str,
    spec: GrammarSpec | None = None,
    *,
    prompt: str = "prompt",
    seed: int | None = None,
    max_tokens: int = 400,
    after: tuple[tuple[int, ...], ...] = (),
    num_choices: int = 1,
) -> InferenceRequest:
    """Returns a request for JSON by `SCHEMA` unless another grammar is given; sampled with a seed, else greedy."""
    return make_request(
        request_id,
        prompt,
        stop=StopRules(max_tokens),
        sampling=SamplingParams(temperature=0.0 if seed is None else 1.0, seed=seed or 0),
        num_choices=num_choices,
        grammar=GrammarRule(spec if spec is not None else JsonSchemaSpec(SCHEMA), after),
    )
