"""EngineStartFailed: an engine that never became ready, and was given up."""

from collections.abc import Sequence


class EngineStartFailed(Exception):
    """The message says why. Of a process: `exit_code` of the last one, `last_lines` that it wrote on standard error."""

    def __init__(self, words: str, *, exit_code: int | None = None, last_lines: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.exit_code = exit_code
        self.last_lines = tuple(last_lines)
