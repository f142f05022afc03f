"""EngineScene: what the scenes of all engines' tests have in common, as `testing/check_engine.py` asks for it."""

import asyncio
from collections.abc import Callable

from tidegate.inference.request import InferenceRequest
from tidegate.testing.requests import seeded_request

PATIENCE_S = 20.0


class EngineScene:
    """Its subclasses have `engine` and `lose`, and are async context managers. `pause_s`: between two looks."""

    patience_s = PATIENCE_S
    pause_s = 0.0
    prompt_tokens = 20

    def make_request(
        self, request_id: str, *, num_choices: int = 1, max_tokens: int = 8, seed: int = 1
    ) -> InferenceRequest:
        return seeded_request(
            request_id, num_choices=num_choices, max_tokens=max_tokens, seed=seed, num_prompt=self.prompt_tokens
        )

    def work(self) -> None:
        """Lets an engine work that does not by itself."""

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self.patience_s):
                while not condition():
                    self.work()
                    await asyncio.sleep(self.pause_s)
        except TimeoutError:
            raise AssertionError("the condition never held") from None
