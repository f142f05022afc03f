"""What makes the contract page say what the server does not do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsErrors, EditsHead, Heard, Ignores, Mutant, on_base


@dataclass
class EditsPage(Mutant):
    """`edit` changes the contract page in place, and nothing else."""

    says: str
    edit: Callable[[Any], None]

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        if heard.target == "/v1/contract":
            self.edit(value)
        return value


@dataclass
class _Miscounts(Mutant):
    """/v1/tokenize counts a token that generation does not read."""

    says: str = "counts one more token than it bills"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return value | {"count": value["count"] + 1} if heard.target == "/v1/tokenize" else value


def _page(says: str, *path: str | int, value: Any) -> EditsPage:
    """A page that has another value at the path."""

    def edit(page: Any) -> None:
        for step in path[:-1]:
            page = page[step]
        page[path[-1]] = value

    return EditsPage(says, edit)


def _limit(name: str, value: int) -> EditsPage:
    return _page(f"lists another limit {name}", "limits", name, "value", value=value)


def _unnamed() -> EditsErrors:
    return EditsErrors(
        "does not name the limit that fired",
        lambda value: {"error": {name: part for name, part in value["error"].items() if name != "limit"}},
    )


def _late(says: str, field: str, value: Any) -> EditsPage:
    """Both errors of deadlines: which one comes depends on what the server has measured."""

    def edit(page: Any) -> None:
        for code in ("deadline_exceeded", "deadline_unreachable"):
            page["errors"][code][field] = value

    return EditsPage(says, edit)


def _unlisted(code: str) -> EditsPage:
    return EditsPage(f"does not list {code}", lambda page: page["errors"].pop(code))


def _status(code: str) -> EditsPage:
    return _page(f"lists another status of {code}", "errors", code, "status", value=418)


def _advice(code: str) -> EditsPage:
    return _page(f"lists that {code} may be retried", "errors", code, "retry", value="later")


_IMAGES = {"method": "POST", "path": "/v1/images", "needs_key": True}


def _header(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    return status, {name: "1.9" if name.lower() == "tidegate-contract" else value for name, value in headers.items()}


MUTANTS: Mutants = {
    "contract.version": (EditsHead("names another version in the header", _header),),
    "contract.models": (_page("describes another model", "models", 0, "id", value="another"),),
    "contract.revision": (
        _page("names another revision", "models", 0, "revision", value="0" * 32),
        EditsChunks("leaves system_fingerprint out of chunks", lambda chunk, _: [chunk | {"system_fingerprint": "x"}]),
    ),
    "contract.unknown_fields": (
        _page("says that unknown fields are refused", "unknown_fields", "policy", value="reject"),
        Ignores(("no_such_field",)),
    ),
    "contract.token_counts": (on_base("simulated", _Miscounts()),),
    "contract.routes": (
        EditsPage("lists a route that is not there", lambda page: page["routes"].append(_IMAGES)),
        EditsPage("does not list a route that is there", lambda page: page["routes"].pop(0)),
    ),
    "contract.error_of_invalid_json": (_unlisted("invalid_json"), _advice("invalid_json")),
    "contract.error_of_invalid_value": (_unlisted("invalid_value"),),
    "contract.error_of_missing_field": (_status("missing_field"),),
    "contract.error_of_no_route": (_status("route_not_found"),),
    "contract.error_of_wrong_method": (_status("method_not_allowed"),),
    "contract.error_of_media_type": (_status("unsupported_media_type"),),
    "contract.error_of_not_served": (_status("unsupported_parameter"),),
    "contract.error_of_bad_key": (_advice("invalid_value"),),
    "contract.error_of_too_late": (
        _late("lists another status of deadlines", "status", 418),
        _late("lists that deadlines may be retried", "retry", "later"),
    ),
    "contract.limit_stop_strings": (_limit("stop_strings", 5), _unnamed()),
    "contract.limit_messages": (_unnamed(),),
    "contract.limit_tools": (_limit("tools", 100), _unnamed()),
    "contract.limit_logit_bias_entries": (_limit("logit_bias_entries", 1000),),
    "contract.limit_json_depth": (_limit("json_depth", 100),),
    "contract.limit_context_length": (_unnamed(),),
    "contract.limit_prompts": (_limit("prompts", 200),),
}
