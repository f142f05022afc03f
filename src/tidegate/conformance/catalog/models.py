"""Which models a server says it has."""

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.checks.models import is_found_alike, is_listed_model, is_model, is_model_list, path_of_first
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_LIST = Ask(name="list", method="GET", path="/models")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._"
_LOOKUP = (Capability.MODEL_LIST, Capability.MODEL_LOOKUP)

CASES = (
    Case(
        id="models.list",
        title="The list of models has the shape that clients read, and no id twice",
        why="Typed clients fail on the first model without `created` or `owned_by`.",
        clauses=("openai:models.list",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.MODEL_LIST,),
        asks=(_LIST,),
        expects=(expect(has_status, "list", allowed=(200,)), expect(is_model_list, "list")),
    ),
    Case(
        id="models.retrieve",
        title="Each listed model can be looked up, and says the same as the list",
        why="Clients look a model up before they use it; a 404 there looks like a lost model.",
        clauses=("openai:models.retrieve",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_LOOKUP,
        asks=(_LIST, Ask(method="GET", path=Derived(path_of_first, ("list",)), wave=1)),
        expects=(
            expect(has_status, allowed=(200,)),
            expect(is_model),
            expect(is_listed_model, "list", "it"),
        ),
    ),
    Case(
        id="models.encoded_id",
        title="A model is found under its percent-encoded id",
        why="Ids hold slashes, which clients encode; some encode more.",
        clauses=("openai:models.retrieve", "openai:http.target"),
        severity=Severity.NUISANCE,
        needs=_LOOKUP,
        asks=(
            _LIST,
            Ask(name="plain", method="GET", path=Derived(path_of_first, ("list",)), wave=1),
            Ask(name="encoded", method="GET", path=Derived(path_of_first, ("list",), {"encodes": _LETTERS}), wave=1),
        ),
        expects=(expect(is_found_alike, "plain", "encoded"),),
    ),
    Case(
        id="models.unknown",
        title="A model that is not there is a 404 when it is looked up, with and without a slash in its name",
        why="A 200 for any name makes a typing error look like a served model.",
        clauses=("openai:models.unknown",),
        severity=Severity.WRONG_DATA,
        asks=(
            Ask(name="plain", method="GET", path="/models/no-such-{marker}"),
            Ask(name="with_slash", method="GET", path="/models/no/such-{marker}"),
            Ask(name="encoded_slash", method="GET", path="/models/no%2Fsuch-{marker}"),
        ),
        expects=tuple(expect(has_status, name, allowed=(404,)) for name in ("plain", "with_slash", "encoded_slash")),
    ),
)
