"""Pseudo-random bits for arithmetic that stands in for a model."""

import numpy as np
import numpy.typing as npt


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A bijection of 64-bit words that spreads every input bit over the output (the splitmix64 finaliser)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: npt.NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return out
