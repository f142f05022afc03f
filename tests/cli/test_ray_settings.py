"""From settings to an engine on Ray: what is asked of Ray, what the actor builds, and what is refused by name."""

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from harness.byte_folder import write_byte_folder
from tidegate.cli.doctor_ray import lacking_resources
from tidegate.cli.inner_engine import inner_settings, is_on_ray
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import load_model
from tidegate.cli.ray_keeper import actor_class, actor_name, actor_needs, check_ray, hosted_spec, link_settings
from tidegate.cli.ray_section import OnRayKind, UnreadableAmount, read_amounts
from tidegate.cli.remote_settings import idle_settings
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve
from tidegate.cli.vllm_actor import VllmActor, vllm_settings
from tidegate.engines.ray.actor_spec import ActorNeeds, decode_spec, encode_spec
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.hosted_engine import MAKERS, UnknownKind, make_hosted


def settings_of(**flags: Any) -> Settings:
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return resolve(None, {}, {"engine.kind": "ray", **named}, is_file_required=False).settings


SIMULATED = {"engine__ray_engine": "simulated"}

AMOUNTS: dict[str, dict[str, float] | None] = {
    "CPU=3 GPU=1": {"CPU": 3, "GPU": 1},
    "accelerator_type:A100=0.5": {"accelerator_type:A100": 0.5},
    "a=b=2": {"a=b": 2},
    "": None,
    "CPU": None,
    "CPU=": None,
    "=3": None,
    "CPU=-1": None,
    "CPU=inf": None,
    "CPU=nan": None,
    "CPU=1 CPU=2": None,
}


@pytest.mark.parametrize("text", AMOUNTS)
def test_amounts_are_read_or_refused(text: str) -> None:
    expected = AMOUNTS[text]
    if expected is None:
        with pytest.raises(UnreadableAmount):
            read_amounts(text)
    else:
        assert read_amounts(text) == expected


def test_what_ray_is_asked_for_follows_from_the_settings() -> None:
    assert actor_needs(settings_of()) == ActorNeeds()
    needs = actor_needs(
        settings_of(
            engine__ray_num_cpus=2.5,
            engine__ray_num_gpus=1.0,
            engine__ray_memory_bytes=1000,
            engine__ray_resources=("TPU=4", "disk=1"),
            engine__ray_bundles=("CPU=3 GPU=1", "CPU=1 GPU=1"),
            engine__ray_strategy="STRICT_PACK",
            engine__ray_max_restarts=0,
            ray__detached=True,
        )
    )
    assert needs == ActorNeeds(
        num_cpus=2.5,
        num_gpus=1.0,
        memory_bytes=1000,
        resources={"TPU": 4, "disk": 1},
        bundles=({"CPU": 3, "GPU": 1}, {"CPU": 1, "GPU": 1}),
        strategy="STRICT_PACK",
        max_restarts=0,
        is_detached=True,
    )


WORDS: dict[str, ActorNeeds] = {
    "a place with CPU=1": ActorNeeds(),
    "a place with CPU=2 GPU=0.5 memory=1e+09 TPU=4": ActorNeeds(
        num_cpus=2, num_gpus=0.5, memory_bytes=10**9, resources={"TPU": 4}
    ),
    "a place with CPU=2 GPU=1 and a place with GPU=1": ActorNeeds(bundles=({"CPU": 2, "GPU": 1}, {"GPU": 1})),
    "a place with nothing in particular": ActorNeeds(num_cpus=0),
}


@pytest.mark.parametrize("words", WORDS)
def test_what_an_engine_waits_for_is_said_in_words(words: str) -> None:
    assert WORDS[words].in_words == words


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a client address": ({"ray__address": "ray://h:10001"}, "ray.address"),
    "a lease of few beats": ({"ray__lease_s": 2.0, "ray__heartbeat_s": 1.0}, "ray.lease_s"),
    "workers without a cluster": ({"server__workers": 2}, "ray.address"),
    "shared engines that end with us": ({"ray__detached": True}, "ray.detached"),
    "an unreadable resource": ({"engine__ray_resources": ("TPU",)}, "engine.ray_resources"),
    "an unreadable bundle": ({"engine__ray_bundles": ("CPU=1", "CPU")}, "engine.ray_bundles"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_do_not_go_together_are_refused_by_name(name: str) -> None:
    flags, setting = REFUSED[name]
    with pytest.raises(LoadError, match=setting):
        check_ray(settings_of(**flags))


def test_inside_an_actor_the_engine_is_what_it_would_be_here() -> None:
    settings = settings_of(**SIMULATED, engine__max_sequences=7)
    assert is_on_ray(settings)
    inside = inner_settings(settings)
    assert (inside.engine.kind, inside.engine.max_sequences) == ("simulated", 7)
    assert inner_settings(inside) is inside
    loaded = load_model(settings)
    assert loaded.served.name == "simulated"
    spec = hosted_spec(settings, loaded)
    assert spec.process is not None
    assert (spec.kind, spec.process.backend, spec.process.max_sequences) == ("simulated", "simulated", 7)
    assert spec.process.calibration_file is None, "the engine's machine is another one"


def test_a_specification_crosses_as_it_is_and_differs_where_its_engine_does() -> None:
    loaded = load_model(settings_of(**SIMULATED))
    one, same, other = (
        hosted_spec(settings_of(**SIMULATED, engine__max_sequences=number), loaded) for number in (8, 8, 9)
    )
    assert decode_spec(encode_spec(one)) == one
    assert one.digest == same.digest == decode_spec(encode_spec(one)).digest
    assert one.digest != other.digest


def test_a_value_that_equals_the_default_is_the_default_whoever_wrote_it_down() -> None:
    """Server processes, and servers with other settings files, share an engine."""
    settings = settings_of(**SIMULATED)
    written = msgspec.json.decode(msgspec.json.encode(settings), type=Settings)
    assert written == settings
    loaded = load_model(settings)
    specs = [
        hosted_spec(one, loaded) for one in (settings, written, settings_of(**SIMULATED, engine__kv_layout="auto"))
    ]
    assert len({one.digest for one in (*specs, *map(decode_spec, map(encode_spec, specs)))}) == 1


def test_llama_cpp_gets_the_processors_and_the_memory_that_ray_keeps_for_it() -> None:
    flags: dict[str, Any] = {"engine__ray_num_cpus": 3.0, "engine__ray_memory_bytes": 12345}
    loaded = load_model(settings_of())
    asked = hosted_spec(settings_of(**flags), loaded).process
    assert asked is not None
    assert (asked.num_threads, asked.memory_bytes) == (3, 12345)
    told = hosted_spec(settings_of(**flags, engine__threads=2), loaded).process
    assert told is not None
    assert told.num_threads == 2
    assert Path(told.model_path or "").is_file()


def test_a_model_is_named_by_its_whole_path_because_actors_stand_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = load_model(settings_of()).source
    assert bundled is not None
    monkeypatch.chdir(bundled.path.parent)
    named = settings_of(model__source=bundled.path.name)
    told = hosted_spec(named, load_model(named)).process
    assert told is not None
    assert told.model_path == str(bundled.path)


def vllm_of(folder: Path, **flags: Any) -> Settings:
    return settings_of(engine__ray_engine="vllm", model__source=str(folder), **flags)


def test_vllm_on_ray_is_started_there_with_what_concerns_it_and_is_not_needed_here(tmp_path: Path) -> None:
    settings = vllm_of(
        write_byte_folder(tmp_path / "my-model"),
        engine__options={"tensor_parallel_size": 2},
        engine__max_sequences=5,
        engine__ray_bundles=("CPU=1 GPU=1", "CPU=1 GPU=1"),
        engine__max_replicas=2,
        model__max_model_len=512,
        admission__policy="fcfs",
        server__drain_timeout_s=7.0,
        server__workers=2,
        grammar__backend="none",
    )
    loaded = load_model(settings)
    assert (loaded.served.name, idle_settings(settings), actor_class(settings)) == ("my-model", [], VllmActor)
    spec = hosted_spec(settings, loaded)
    assert (spec.kind, spec.process) == ("vllm", None)
    there = vllm_settings(decode_spec(encode_spec(spec)))
    assert (there.engine.kind, there.engine.max_sequences, there.engine.options) == (
        *("vllm", 5),
        {"tensor_parallel_size": 2},
    )
    assert (there.model.source, there.model.max_model_len) == (str(tmp_path / "my-model"), 512)
    assert (there.admission.policy, there.server.drain_timeout_s, there.grammar.backend) == ("fcfs", 7.0, "none")
    assert (there.engine.ray_bundles, there.engine.max_replicas) == ((), None)


def test_servers_that_differ_in_what_is_their_own_share_vllm_and_others_do_not(tmp_path: Path) -> None:
    folder = write_byte_folder(tmp_path)
    loaded = load_model(vllm_of(folder))
    digest = hosted_spec(vllm_of(folder), loaded).digest
    own: dict[str, Any] = {"server__port": 1, "engine__replicas": 3, "engine__ray_num_cpus": 2.0}
    assert hosted_spec(vllm_of(folder, **own), loaded).digest == digest
    assert hosted_spec(vllm_of(folder, engine__options={"dtype": "half"}), loaded).digest != digest


def test_an_actor_of_vllm_says_what_it_lacks(tmp_path: Path) -> None:
    settings = vllm_of(write_byte_folder(tmp_path))
    spec = encode_spec(hosted_spec(settings, load_model(settings)))
    actor = VllmActor(spec)
    with pytest.raises(UnknownKind, match="vLLM, which is not installed"):
        actor.make_hosted(decode_spec(spec))


def test_a_shared_actor_is_found_by_its_name_and_one_of_our_own_is_not() -> None:
    shared = settings_of(ray__detached=True, ray__address="auto", ray__name="prod")
    assert actor_name(shared, "engine-1", lambda: b"xx") == "prod-engine-1"
    own = settings_of(ray__name="prod")
    names = {actor_name(own, "engine-1", lambda entropy=entropy: entropy) for entropy in (b"xx", b"yy")}
    assert len(names) == 2
    assert all(name.startswith("prod-engine-1-") for name in names)


def test_a_stall_outlasts_several_signs_of_life() -> None:
    settings = settings_of(engine__stall_timeout_s=0.5, ray__heartbeat_s=1.0)
    assert link_settings(settings).patience == 4
    assert link_settings(settings_of(ray__heartbeat_s=0.5)).patience == 120


def test_settings_for_ray_do_nothing_elsewhere_and_are_named() -> None:
    here = resolve(None, {}, {"engine.ray_num_gpus": 1.0}, is_file_required=False).settings
    assert idle_settings(here) == ["engine.ray_num_gpus"]
    assert idle_settings(settings_of(engine__ray_num_gpus=1.0, engine__max_sequences=3)) == []
    assert idle_settings(settings_of(engine__url="http://h")) == ["engine.url"]


def test_what_a_cluster_never_has_enough_of_is_named() -> None:
    total = {"CPU": 4.0, "GPU": 1.0}
    assert lacking_resources(settings_of(engine__replicas=4), total) == []
    assert lacking_resources(settings_of(engine__replicas=5), total) == ["CPU"]
    bundles = settings_of(engine__ray_bundles=("CPU=1 GPU=1", "CPU=1 GPU=1"), engine__ray_resources=("x=1",))
    assert lacking_resources(bundles, total) == ["GPU"]
    assert lacking_resources(settings_of(engine__ray_resources=("TPU=1",)), total) == ["TPU"]


def test_every_kind_that_can_be_chosen_can_be_made_in_an_actor_and_no_other() -> None:
    spec = hosted_spec(settings_of(**SIMULATED), load_model(settings_of(**SIMULATED)))
    assert {*MAKERS, "vllm"} == set(get_args(OnRayKind))
    assert actor_class(settings_of(**SIMULATED)) is EngineActor
    with pytest.raises(UnknownKind, match="abacus"):
        make_hosted(msgspec.structs.replace(spec, kind="abacus"))
    with pytest.raises(UnknownKind, match="options"):
        make_hosted(msgspec.structs.replace(spec, process=None))
