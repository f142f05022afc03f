"""The actor of vLLM with a stand-in for its library inside: everything around vLLM, where Ray runs it."""

from harness.llm_stand_in import StandInLibrary
from tidegate.cli import vllm_engine
from tidegate.cli.vllm_actor import VllmActor
from tidegate.engines.ray.actor_spec import HostedEngineSpec
from tidegate.engines.ray.hosted_engine import HostedEngine
from tidegate.engines.vllm.library import Library


class StandInVllmActor(VllmActor):
    """vLLM is not installed where the tests run."""

    def make_hosted(self, spec: HostedEngineSpec) -> HostedEngine:
        vllm_engine.require_vllm = lambda: None
        return super().make_hosted(spec)

    def make_library(self) -> Library:
        return StandInLibrary()
