"""A `vllm serve` with the llguidance that vLLM brings: its constraints are refused, and an operator is told why.

old_llguidance.py MODEL_FOLDER URL
"""

import asyncio
import sys

import uvloop
from fields import SCHEMA
from real_scene import RealScene, connect_http

from tidegate.errors import UnsupportedParameter
from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.sampling import StopRules
from tidegate.testing.check_engine import RecordingSink


async def check(folder: str, url: str) -> int:
    notes: list[str] = []
    async with connect_http(folder, url, notes.append) as (loaded, engine):
        scene = RealScene(loaded, engine, lambda: None)
        model = engine.statistics().model
        assert model is not None and model.grammar_backend is None, model
        assert any("llguidance is older than 1.9" in note for note in notes), notes
        try:
            request = scene.make_request("refused", stop=StopRules(max_tokens=8), grammar=GrammarRule(SCHEMA))
            engine.submit(request, RecordingSink())
        except UnsupportedParameter as error:
            sys.stdout.write(f"refused: {error}; noted: {notes}\n")
            return 0 if "does not enforce grammars" in str(error) else 1
        sys.stdout.write("FAILED: a constraint was taken that would not be kept\n")
        return 1


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(check(sys.argv[1], sys.argv[2])))
