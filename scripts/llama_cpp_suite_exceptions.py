"""A pytest plugin for llama.cpp's server tests: what is put between them and us, and which of them must fail.

Between: their requests leave `model` out, which this API requires, and rank at `/rerank`; the plugin adds the name and
the `/v1`. Nothing else of a request changes, and nothing of an answer. No model is downloaded.

Those that must fail are run (strict): one that is listed and passes fails the run, and so does one where the server
does not start, unless that is the reason. `docs/suites.md` tells the same to people.
"""

import os
from collections.abc import Callable
from importlib import import_module

import pytest

MODEL = os.environ.get("SUITE_MODEL", "")
PATHS = {"/rerank": "/v1/rerank"}

EMPTY = "an empty text is 400 here, as it is for the API's own service"
MIXED = "token ids and text within one list: a prompt is either a text or ids"
OBJECTS = "objects as inputs are llama.cpp's own; the API's inputs are texts and token ids"
EVERY_TOKEN = (
    "pooling `none` (a vector for each token, from the route /embeddings) is not served: the server does not start"
)
WORDS = "the text is refused, with 400 `context_length_exceeded`; the test wants llama.cpp's words in the message"
TEI = "`texts` in place of `documents`, and a bare list as the answer: another server's dialect"
OTHER_TOKENIZER = "the numbers of tokens of jina-reranker-v1-tiny-en, which is not to be had here"
NO_MEANING = "needs a model that was trained to rank; the one with a head here is random"

EXCEPTIONS = (
    ("test_embedding_mixed_input[-False]", EMPTY),
    ("test_embedding_mixed_input[input3-False]", MIXED),
    ("test_embedding_mixed_input[input7-True]", MIXED),
    ("test_embedding_mixed_input[input8-False]", OBJECTS),
    ("test_embedding_mixed_input[input9-False]", OBJECTS),
    ("test_embedding_mixed_input[input10-True]", OBJECTS),
    ("test_embedding_content_text_same_as_string", OBJECTS),
    ("test_embedding_pooling_none", EVERY_TOKEN),
    ("test_embedding_error_prompt_too_long", WORDS),
    ("test_rerank_tei_", TEI),
    ("test_rerank_usage", OTHER_TOKENIZER),
)
"""Beginning of the test's name, reason."""
ORDERED = "test_rerank"
"""Whole name of the test of an order that only a trained model finds."""


def pytest_configure() -> None:
    utils = import_module("utils")
    ask: Callable[..., object] = utils.ServerProcess.make_request

    def ask_us(server: object, method: str, path: str, data: object = None, **more: object) -> object:
        if isinstance(data, dict):
            data = {"model": MODEL, **data}
        return ask(server, method, PATHS.get(path, path), data, **more)

    utils.ServerProcess.make_request = ask_us
    utils.ServerPreset.load_all = staticmethod(lambda: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = reason_of(item.name, has_head=os.environ.get("SUITE_HAS_HEAD") == "1")
        if reason is not None:
            fault = RuntimeError if reason == EVERY_TOKEN else AssertionError
            item.add_marker(pytest.mark.xfail(strict=True, raises=fault, reason=reason))


def reason_of(name: str, *, has_head: bool) -> str | None:
    """Returns why a test must fail; None for one that must pass."""
    if has_head and name == ORDERED:
        return NO_MEANING
    return next((reason for beginning, reason in EXCEPTIONS if name.startswith(beginning)), None)
