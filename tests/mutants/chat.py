"""What breaks chat completions as a whole."""

from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsHead, EditsRequest, EditsValue, Ignores, Mutant
from mutants.edits import each_choice, each_message, set_member, without


def _last_message_only(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"messages": body["messages"][-1:]}


def _drops_role(role: str) -> Mutant:
    def edit(body: dict[str, Any]) -> dict[str, Any]:
        kept = [message if message["role"] != role else message | {"content": ""} for message in body["messages"]]
        return body | {"messages": kept}

    return EditsRequest(f"drops what messages of the role {role} say", edit)


def _edit_parts(edit: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def edited(body: dict[str, Any]) -> dict[str, Any]:
        messages = [
            message | {"content": edit(message["content"])} if isinstance(message["content"], list) else message
            for message in body["messages"]
        ]
        return body | {"messages": messages}

    return edited


def _one_more(name: str) -> Mutant:
    return EditsRequest(
        f"counts {name} from zero", lambda body: body | ({name: body[name] + 1} if body.get(name) else {})
    )


def _old_limit_wins(body: dict[str, Any]) -> dict[str, Any]:
    return without(body, "max_completion_tokens") if "max_tokens" in body else body


MUTANTS: Mutants = {
    "chat.object": (
        EditsValue("says that it is a text completion", set_member("object", "text_completion")),
        EditsValue("gives created as text", lambda value: value | {"created": str(value["created"])}),
        EditsValue("has no index in choices", each_choice(lambda choice: without(choice, "index"))),
        EditsValue("finishes with a reason of its own", each_choice(set_member("finish_reason", "eos_token"))),
        EditsValue("has no role", each_message(lambda message: without(message, "role"))),
        EditsValue("gives content as parts", each_message(set_member("content", [{"type": "text", "text": "x"}]))),
    ),
    "chat.nullable_members": (
        EditsValue("leaves null logprobs out", each_choice(lambda choice: without(choice, "logprobs"))),
        EditsValue("leaves refusal out", each_message(lambda message: without(message, "refusal"))),
    ),
    "chat.media_type": (
        EditsHead("says text/plain", lambda _, status, headers: (status, {**headers, "content-type": "text/plain"})),
    ),
    "chat.own_ids": (EditsValue("has one id for all", set_member("id", "chatcmpl-1")),),
    "chat.created": (
        EditsValue("counts milliseconds", lambda value: value | {"created": value["created"] * 1000}),
        EditsValue("tells no time", set_member("created", 0)),
        EditsValue("is a day behind", lambda value: value | {"created": value["created"] - 86400}),
    ),
    "chat.model": (EditsValue("names the file of the weights", set_member("model", "model-00001.gguf")),),
    "chat.history_read": (EditsRequest("reads only the last message", _last_message_only),),
    "chat.system_read": (_drops_role("system"),),
    "chat.developer_read": (_drops_role("developer"),),
    "chat.assistant_read": (_drops_role("assistant"),),
    "chat.parts_read": (EditsRequest("reads only the first part", _edit_parts(lambda parts: parts[:1])),),
    "chat.parts_joined": (
        EditsRequest("joins parts without a break", _edit_parts(lambda parts: "".join(part["text"] for part in parts))),
    ),
    "chat.max_tokens": (
        _one_more("max_tokens"),
        Ignores(("max_tokens",)),
    ),
    "chat.finish_length": (EditsValue("says stop when it is cut", each_choice(set_member("finish_reason", "stop"))),),
    "chat.one_token": (_one_more("max_tokens"),),
    "chat.max_completion_tokens": (Ignores(("max_completion_tokens",)),),
    "chat.max_completion_wins": (EditsRequest("lets max_tokens win", _old_limit_wins),),
    "chat.fingerprint": (
        EditsValue("has a constant fingerprint", set_member("system_fingerprint", "fp_server")),
        EditsChunks(
            "has it on the first chunk only",
            lambda chunk, position: [chunk if position == 0 else without(chunk, "system_fingerprint")],
        ),
    ),
}
