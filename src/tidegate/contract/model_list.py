"""GET /v1/models and /v1/models/{id}."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class Model(Struct, frozen=True, kw_only=True):
    """One served model. `created` is in seconds since the Unix epoch. Extensions: `max_model_len` in tokens, and
    `endpoints`, the paths that the model serves; both are there as soon as the engine is ready.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    max_model_len: int | UnsetType = UNSET
    endpoints: list[str] | UnsetType = UNSET


class ModelList(Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[Model]
