"""What both engines need of a request: its tokens as numbers, a seed for each choice, why an output stopped.

Also what neither can do, refused with the field's name. Pure.
"""

import sys
from array import array
from hashlib import blake2b

from tidegate.errors import UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest


def unserved(param: str, reason: str) -> UnsupportedParameter:
    """Returns the error for a field that this engine does not honour."""
    return UnsupportedParameter(f"{param}: {reason}", param=param)


def unserved_constraint(reason: str) -> UnsupportedParameter:
    """Returns the error for a constraint that this engine does not keep. Which field brought it is not known here."""
    return UnsupportedParameter(f"constrained output: {reason}")


def check_everywhere(request: InferenceRequest) -> None:
    """Raises UnsupportedParameter for what no remote engine is asked to do."""
    if request.pooling is not None:
        raise unserved("model", "the engine does not read texts into vectors")
    if request.script is not None:
        raise unserved("x_script", "only the scripted engine plays scripts")
    if request.sampling.bad_words:
        raise unserved("bad_words", "the engine takes words and not tokens, so they could not be kept exactly")
    if request.grammar is not None and (request.stop.ignore_eos or request.stop.min_tokens):
        param = "ignore_eos" if request.stop.ignore_eos else "min_tokens"
        raise unserved(param, "not together with a constraint: the engine would write on without it")


def token_ids_of(request: InferenceRequest) -> list[int]:
    """Returns the prompt as numbers."""
    ids = array("I")
    ids.frombytes(request.prompt)
    if sys.byteorder == "big":
        ids.byteswap()
    return ids.tolist()


def choice_seed(seed: int, choice: int, bits: int) -> int:
    """Returns the seed of one choice, from 0 to 2**bits - 1: the same for the same request, another for each choice."""
    source = seed.to_bytes(9, "little", signed=True) + choice.to_bytes(4, "little")
    return int.from_bytes(blake2b(source, digest_size=8).digest(), "little") >> (64 - bits)


def why_stopped(
    request: InferenceRequest, last_token: int | None, eos_token_ids: tuple[int, ...]
) -> tuple[EngineFinish, int | None]:
    """Returns why an output ended that the engine says it stopped, and the stop token: from its last token."""
    if last_token is not None and last_token in request.stop.token_ids:
        return EngineFinish.STOP_TOKEN, last_token
    if request.grammar is not None and last_token not in eos_token_ids:
        return EngineFinish.GRAMMAR_COMPLETE, None
    return EngineFinish.EOS, None
