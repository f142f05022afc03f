"""A pytest plugin for openai-python's own tests: those that must be refused here, each with the reason.

They are run, not left out: a test that is listed and passes fails the run (strict), and so does one that fails with
anything but an HTTP status. `docs/suites.md` tells the same to people.
"""

import openai
import pytest

PLACEHOLDERS = (
    "sends a placeholder in every field (a logit_bias for the token 'foo', max_tokens 0, stream_options without a "
    "stream, a hosted feature): 400 or 422 by CONTRACT.md section 4"
)
NOT_STORED = "stored chat completions are not served: `store: true` is 422, and their routes are 404 or 405"
NO_DELETION = "a served model cannot be deleted over the API: 405"

EXCEPTIONS = (
    ("/test_completions.py", "create_with_all_params", PLACEHOLDERS),
    ("/chat/test_completions.py", "_retrieve", NOT_STORED),
    ("/chat/test_completions.py", "_update", NOT_STORED),
    ("/chat/test_completions.py", "_list", NOT_STORED),
    ("/chat/test_completions.py", "_delete", NOT_STORED),
    ("/test_models.py", "_delete", NO_DELETION),
)
"""End of the file's path, part of the test's name, reason."""
OWN_WORD = (
    "the client asks for base64 by itself, and in strict mode validates the answer before it decodes it: only a server "
    "that ignores encoding_format passes (openai_strict_base64.py shows it without a server)"
)
STRICT = ("[strict]", "[aiohttp]")
CLIENT_SIDE = "test_path_params_"
"""Tests of arguments that the client itself refuses; no request is made."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = reason_of(item.nodeid)
        if is_own_word(item.nodeid):
            item.add_marker(pytest.mark.xfail(strict=True, raises=openai.APIResponseValidationError, reason=OWN_WORD))
        elif reason is not None:
            item.add_marker(pytest.mark.xfail(strict=True, raises=openai.APIStatusError, reason=reason))


def is_own_word(node_id: str) -> bool:
    """Whether a test of embeddings gives no encoding, and validates strictly."""
    path, _, name = node_id.partition("::")
    return path.endswith("/test_embeddings.py") and name.endswith(STRICT) and "with_all_params" not in name


def reason_of(node_id: str) -> str | None:
    """Returns why the server refuses what a test asks for; None for a test that must pass."""
    path, _, name = node_id.partition("::")
    if CLIENT_SIDE in name:
        return None
    return next((reason for end, part, reason in EXCEPTIONS if path.endswith(end) and part in name), None)
