"""Which grammar backend an engine has: the one it was told, or none, and then it says why."""

import pytest

from tidegate.backends.simulated import SimulatedBackend
from tidegate.engine.options import EngineOptions
from tidegate.engine_process.wiring import build_engine, build_grammars
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import TokenTable
from tidegate.system import SystemClock

IDENTITY = make_compiler(SimulatedBackend().token_table()).identity

# options, who enforces, what the engine says about it
BACKENDS = [
    (EngineOptions(backend="simulated"), IDENTITY, None),
    (EngineOptions(backend="simulated", grammar_backend="none"), None, None),
    (EngineOptions(backend="simulated", grammar_backend="nobody"), None, "no grammar backend is called nobody"),
    (EngineOptions(backend="scripted"), None, None),
]


@pytest.mark.parametrize(
    ("options", "identity", "fault"),
    BACKENDS,
    ids=[f"{case.backend}-{case.grammar_backend}" for case, _, _ in BACKENDS],
)
def test_an_engine_starts_whoever_enforces_grammars(
    options: EngineOptions, identity: str | None, fault: str | None
) -> None:
    engine = build_engine(options, SystemClock())
    try:
        assert engine.core.model.grammar_backend == identity
        assert (engine.grammars.fault is None) == (fault is None)
        assert (fault or "") in (engine.grammars.fault or "")
    finally:
        engine.close()


def test_a_vocabulary_that_cannot_carry_grammars_keeps_no_engine_from_starting() -> None:
    caps = SimulatedBackend().caps
    table = TokenTable([b"a"] * caps.vocab_size, frozenset(), ())
    grammars = build_grammars(EngineOptions(backend="simulated"), SystemClock(), caps, lambda: table)
    assert (grammars.rows, grammars.pool) == (None, None)
    assert "end token" in str(grammars.fault)
