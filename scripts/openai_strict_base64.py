"""Why nine of openai-python's tests of embeddings can pass with no server that honours `encoding_format`.

Run by `openai_suite.py` beside them, in their environment: no server of ours takes part. The client asks for base64 by
itself; in strict mode it then refuses any base64, the one that its own documentation shows included.
"""

import json

import httpx2
import openai
import pytest

ANSWER = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": "AACAPwAAAEA="}],
    "model": "text-embedding-3-small",
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}
NUMBERS = [1.0, 2.0]


def client_of(asked: list[str], *, is_strict: bool) -> openai.OpenAI:
    """A client whose requests are all answered with ANSWER."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content)["encoding_format"])
        return httpx2.Response(200, json=ANSWER)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(
        base_url="http://localhost", api_key="none", http_client=transport, _strict_response_validation=is_strict
    )


def test_the_loose_client_asks_for_base64_and_reads_it() -> None:
    asked: list[str] = []
    answer = client_of(asked, is_strict=False).embeddings.create(model="m", input="a")
    assert (asked, answer.data[0].embedding) == (["base64"], NUMBERS)


def test_the_strict_client_asks_for_base64_and_refuses_it() -> None:
    asked: list[str] = []
    with pytest.raises(openai.APIResponseValidationError):
        client_of(asked, is_strict=True).embeddings.create(model="m", input="a")
    assert asked == ["base64"]
