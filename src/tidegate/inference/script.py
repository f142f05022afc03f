"""What the scripted engine plays (CONTRACT.md section 15), as tokens and times."""

import msgspec

from tidegate.inference.finish import EngineFinish


class ScriptChoice(msgspec.Struct, frozen=True, array_like=True):
    """One choice's part: which tokens come, when, and how it ends.

    The token list is played `repeat` times. Before token `i` the choice waits `delays_s[i % len(delays_s)]` seconds.
    Step `i` yields `step_tokens[i]` tokens, and one after the list is used up. With `error_after` the choice fails
    after that many tokens.
    """

    token_ids: tuple[int, ...]
    finish: EngineFinish = EngineFinish.EOS
    logprobs: tuple[float, ...] | None = None
    top: tuple[tuple[tuple[int, float], ...], ...] | None = None
    error_after: int | None = None
    repeat: int = 1
    delays_s: tuple[float, ...] = ()
    step_tokens: tuple[int, ...] = ()


class Script(msgspec.Struct, frozen=True, array_like=True):
    """A whole request's script; choice `i` plays `choices[i % len(choices)]`."""

    choices: tuple[ScriptChoice, ...]
    prefill_delay_s: float = 0.0
    queue_delay_s: float = 0.0
    num_prompt_tokens: int | None = None
    """Reported in place of the real count."""
    num_cached_tokens: int = 0
    prompt_logprobs: tuple[float | None, ...] | None = None
