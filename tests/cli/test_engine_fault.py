"""What a started engine cannot serve of the settings is said with the setting and the number, and ends the start."""

import pytest

from tidegate.cli.model_loading import engine_fault, load_model
from tidegate.cli.settings import EngineSettings, ModelSettings, Settings
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo, PoolingMode

EMBEDDING = PoolingInfo(PoolingMode.MEAN, dimensions=64, max_input_tokens=100)
RANKING = PoolingInfo(PoolingMode.RANK, dimensions=64, max_input_tokens=100, labels=("LABEL_0",))


def info(pooling: PoolingInfo | None) -> ModelInfo:
    return ModelInfo(
        vocab_size=258,
        max_model_len=100,
        eos_token_ids=(257,),
        max_sequences=4,
        num_blocks=25,
        block_tokens=16,
        weights_digest="0" * 64,
        build="simulated",
        grammar_backend="llguidance 1.9.1",
        pooling=pooling,
    )


@pytest.mark.parametrize(
    ("fewest", "pooling", "is_fault"),
    [
        (65, EMBEDDING, True),
        (64, EMBEDDING, False),
        (1, EMBEDDING, False),
        (None, EMBEDDING, False),
        (65, RANKING, False),
        (65, None, False),
    ],
)
def test_vectors_cannot_be_cut_to_more_than_they_have(
    fewest: int | None, pooling: PoolingInfo | None, is_fault: bool
) -> None:
    settings = Settings(engine=EngineSettings(kind="simulated"), model=ModelSettings(min_dimensions=fewest))
    fault = engine_fault(load_model(settings), info(pooling))
    assert (fault is not None) is is_fault
    if fault is not None:
        assert "model.min_dimensions is 65" in fault
        assert "have 64 components" in fault
