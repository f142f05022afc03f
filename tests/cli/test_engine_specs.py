"""From settings to models and their engines: tables over sections, replicas, pools, and what does not go together."""

from pathlib import Path

import pytest

from tidegate.cli.engine_specs import ModelSpec, SpecError, further_engine, model_specs, named_engine
from tidegate.cli.model_loading import LoadError, load_models
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import SettingsError, resolve


def read(folder: Path, text: str, **flags: object) -> Settings:
    file = folder / "tidegate.toml"
    file.write_text(text, "utf-8")
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return resolve(file, {}, named, is_file_required=True).settings


def names(specs: tuple[ModelSpec, ...]) -> list[list[str]]:
    return [[engine.name for engine in spec.engines] for spec in specs]


def test_one_engine_is_called_engine_and_replicas_are_numbered_and_share() -> None:
    assert names(model_specs(Settings())) == [["engine"]]
    settings = resolve(None, {}, {"engine.replicas": 3}, is_file_required=False).settings
    (spec,) = model_specs(settings)
    assert names((spec,)) == [["engine-1", "engine-2", "engine-3"]]
    assert {engine.num_sharing for engine in spec.engines} == {3}


def test_a_table_says_what_differs_from_the_sections(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        [engine]
        kind = "scripted"
        max_sequences = 5
        [model]
        max_output_tokens = 7
        [[engines]]
        name = "a"
        served_model_name = ["first", "alias"]
        replicas = 2
        [[engines]]
        name = "b"
        kind = "simulated"
        served_model_name = ["second"]
        max_sequences = 9
        max_output_tokens = 11
        [[engines]]
        name = "c"
        served_model_name = ["first", "alias"]
        """,
    )
    first, second = model_specs(settings)
    assert names((first, second)) == [["a-1", "a-2", "c"], ["b"]]
    assert (first.names, second.names) == (("first", "alias"), ("second",))
    shapes = [(spec.settings.engine.kind, spec.settings.engine.max_sequences) for spec in (first, second)]
    assert shapes == [("scripted", 5), ("simulated", 9)]
    assert [spec.settings.model.max_output_tokens for spec in (first, second)] == [7, 11]
    assert [engine.num_sharing for engine in first.engines] == [2, 2, 1]
    assert all(spec.settings.engines == () for spec in (first, second))


def test_flags_and_environment_count_for_every_table(tmp_path: Path) -> None:
    text = '[[engines]]\nname = "a"\nserved_model_name = ["m"]\n'
    settings = read(tmp_path, text, engine__kind="scripted", engine__max_sequences=3)
    assert model_specs(settings)[0].settings.engine.max_sequences == 3


APART = """
[engine]
kind = "scripted"
[[engines]]
name = "a"
served_model_name = ["m"]
[[engines]]
name = "{name}"
served_model_name = {served}
{more}
"""
FAULTS = {
    "a name twice": (APART.format(name="a", served='["n"]', more=""), "Two engines have the name a"),
    "a model name twice": (APART.format(name="b", served='["n", "m"]', more=""), "m stands for two models"),
    "a number that follows the load beside another table": (
        APART.format(name="b", served='["m"]', more="max_replicas = 2"),
        "b has max_replicas and shares its model",
    ),
    "fewer than the least": (
        APART.format(name="b", served='["n"]', more="min_replicas = 2\nmax_replicas = 4"),
        "b starts with engine.replicas = 1 .*min_replicas = 2",
    ),
    "more than the most": (
        APART.format(name="b", served='["n"]', more="replicas = 3\nmax_replicas = 2"),
        "not between .*max_replicas = 2",
    ),
    "a least without a most": (
        APART.format(name="b", served='["n"]', more="min_replicas = 1"),
        "min_replicas of b needs engine.max_replicas",
    ),
    "a number of engines elsewhere": (
        APART.format(name="b", served='["n"]', more="max_replicas = 2\nurl = 'http://a:1'"),
        "b runs elsewhere",
    ),
    "tokens the wrong way round": (
        APART.format(name="b", served='["n"]', more="max_replicas = 2\n[pool]\nscale_down_tokens = 9999"),
        "scale_down_tokens = 9999 is above",
    ),
    "a pool that disagrees": (APART.format(name="b", served='["m"]', more='tool_format = "none"'), "model.tool_format"),
}


@pytest.mark.parametrize(("text", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_engines_that_do_not_go_together_are_refused(tmp_path: Path, text: str, said: str) -> None:
    settings = read(tmp_path, text)
    with pytest.raises(SpecError, match=said):
        model_specs(settings)
    with pytest.raises(LoadError, match=said):
        load_models(settings)


def test_an_engine_that_joins_has_the_smallest_free_number_and_its_share() -> None:
    (fixed,) = model_specs(resolve(None, {}, {"engine.replicas": 2}, is_file_required=False).settings)
    (scaled,) = model_specs(resolve(None, {}, {"engine.max_replicas": 4}, is_file_required=False).settings)
    assert names((scaled,)) == [["engine-1"]]
    assert (scaled.is_pool, scaled.engines[0].num_sharing, scaled.engines[0].num_to_come) == (True, 4, 4)
    second = further_engine(scaled, ["engine-1"])
    assert (second.name, second.num_sharing, second.num_to_come) == ("engine-2", 4, 3)
    third = further_engine(fixed, ["engine-1", "engine-2"])
    assert (third.name, third.num_sharing, third.num_to_come) == ("engine-3", 3, 1)
    assert further_engine(fixed, ["engine-2"]).name == "engine-1"
    elsewhere = further_engine(fixed, ["engine-1"], "http://a:1")
    assert (elsewhere.name, elsewhere.settings.engine.url) == ("engine-2", "http://a:1")
    assert named_engine(fixed, "engine-2") is fixed.engines[1]
    assert named_engine(fixed, "engine-2", "http://a:1") is not fixed.engines[1]


def test_models_whose_own_names_meet_are_refused(tmp_path: Path) -> None:
    text = '[[engines]]\nname = "a"\nkind = "scripted"\n[[engines]]\nname = "b"\nserved_model_name = ["scripted"]\n'
    with pytest.raises(LoadError, match=r"differ in model\.served_model_name"):
        load_models(read(tmp_path, text, engine__kind="simulated"))


BROKEN = {
    "no name": ("[[engines]]\nkind = 'scripted'", "needs a name"),
    "a senseless name": ("[[engines]]\nname = 'a b'", "needs a name"),
    "an unknown key": ("[[engines]]\nname = 'a'\nkindd = 'scripted'", "no setting kindd .*Did you mean kind"),
    "a value out of range": ("[[engines]]\nname = 'a'\nreplicas = 0", "engine.replicas from .*number 1"),
    "no tables": ("[engines]\nname = 'a'", "must be tables"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_table_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, text)
