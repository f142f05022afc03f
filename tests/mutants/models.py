"""What breaks the lists of models."""

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsValue, Heard, Said
from mutants.routes import answers_where

MODEL = {"object": "model", "created": 1700000000, "owned_by": "x"}


def _without(value: dict, name: str) -> dict:
    return {key: part for key, part in value.items() if key != name}


def _each_model(change: object) -> object:
    assert callable(change)
    return lambda value: value | {"data": [change(model) for model in value["data"]]} if "data" in value else value


def _one_model_other(value: dict) -> dict:
    return value if "data" in value else value | {"created": value["created"] + 1}


def _takes_any_name(heard: Heard) -> Said | None:
    name = heard.target.removeprefix("/v1/models/")
    return Said(200, b'{"id": "x", "object": "model", "created": 1, "owned_by": "x"}') if "no-such" in name else None


MUTANTS: Mutants = {
    "models.list": (
        EditsValue("says no owner", _each_model(lambda model: _without(model, "owned_by"))),  # type: ignore[arg-type]
        EditsValue(
            "tells milliseconds",
            _each_model(lambda model: model | {"created": model["created"] * 1000}),  # type: ignore[arg-type]
        ),
        EditsValue("lists a model twice", lambda value: value | {"data": value["data"] * 2}),
        EditsValue("answers a bare list", lambda value: value["data"]),
    ),
    "models.retrieve": (
        answers_where("has no route for one model", "/models/.", Said(404, b'{"detail": "Not Found"}')),
        EditsValue("dates the model anew in each route", _one_model_other),
        EditsValue(
            "answers one model as a list",
            lambda value: value if "data" in value else {"object": "list", "data": [value]},
        ),
    ),
    "models.encoded_id": (answers_where("does not decode ids", "/models/%", Said(404, b"{}")),),
    "models.unknown": (
        Answers("takes any name for a model", _takes_any_name),
        answers_where("fails on a slash in a name", "%2F"),
    ),
}
