"""Messages go back to the form in which they came: that is what templates are given."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_chat

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b": 1,  "a":2}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "developer", "content": [{"type": "text", "text": "a"}], "name": "dev"},
    {"role": "user", "content": "hi"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}]},
    {"role": "assistant", "tool_calls": [CALL], "reasoning_content": "because"},
    {"role": "assistant", "content": "", "refusal": "no"},
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    {"role": "function", "name": "f", "content": None},
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["role"])
def test_a_message_is_given_back_without_the_members_that_were_absent(message: dict[str, Any]) -> None:
    body = json.dumps({"model": "m", "messages": [message]}).encode()
    assert msgspec.to_builtins(decode_chat(body, Limits()).messages[0]) == message


def test_null_members_are_absent_afterwards() -> None:
    body = b'{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[],"name":null,"reasoning":"r"}]}'
    message = msgspec.to_builtins(decode_chat(body, Limits()).messages[0])
    assert message == {"role": "assistant", "tool_calls": [], "reasoning": "r"}
