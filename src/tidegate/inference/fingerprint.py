"""The fingerprint of a request: equal for two that ask the engine for the same work."""

from hashlib import blake2b

import msgspec

from tidegate.inference.request import InferenceRequest

_ENCODER = msgspec.msgpack.Encoder()


def fingerprint(request: InferenceRequest) -> bytes:
    """Returns a digest of 16 bytes over the prompt and every rule of its generation.

    Left out is what differs between two attempts of one caller: the id and what names it on its way, the priority, and
    the seed, which the server mints where the caller gives none.
    """
    sampling = msgspec.structs.replace(request.sampling, seed=0)
    same = msgspec.structs.replace(request, request_id="", prompt=b"", priority=0, sampling=sampling, hop=None)
    digest = blake2b(_ENCODER.encode(same), digest_size=16)
    digest.update(request.prompt)
    return digest.digest()
