"""Whoever starts a server with a model whose memory cannot be shared is told that it has no prefix cache."""

import msgspec
import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedShape
from tidegate.cli.prefix_cache_text import prefix_cache_text
from tidegate.cli.settings import EngineSettings, Settings
from tidegate.core.step import EngineCore
from tidegate.inference.model_info import ModelInfo
from tidegate.testing.plain_chooser import PlainChooser


def model_of(*, can_share: bool = True, can_truncate: bool = True) -> ModelInfo:
    shape = SimulatedShape(can_share=can_share, can_truncate=can_truncate)
    return EngineCore(SimulatedBackend(shape=shape), PlainChooser()).model


@pytest.mark.parametrize(
    ("can_share", "can_truncate", "is_told"), [(True, True, False), (False, True, True), (True, False, True)]
)
def test_a_model_whose_memory_cannot_be_cut_and_shared_has_none_and_that_is_said(
    can_share: bool, can_truncate: bool, is_told: bool
) -> None:
    model = model_of(can_share=can_share, can_truncate=can_truncate)
    assert model.has_prefix_cache is not is_told
    assert bool(prefix_cache_text(Settings(), model)) is is_told


def test_nothing_is_said_where_nobody_asked_for_one() -> None:
    without = msgspec.structs.replace(Settings(), engine=EngineSettings(prefix_cache=False))
    scripted = msgspec.structs.replace(Settings(), engine=EngineSettings(kind="scripted"))
    model = model_of(can_share=False)
    assert [prefix_cache_text(without, model), prefix_cache_text(scripted, model)] == ["", ""]
    assert prefix_cache_text(Settings(), None) == ""
