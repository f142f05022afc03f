"""Chat completions as a whole: the object, the messages that are read, the token limit."""

from collections.abc import Mapping
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect, expect_over
from tidegate.conformance.catalog.bodies import QUESTION, chat_body
from tidegate.conformance.catalog.openers import generated, streamed
from tidegate.conformance.checks.identity import names_its_model, names_its_revision, was_created_now
from tidegate.conformance.checks.same_answer import has_distinct, is_like_repeated
from tidegate.conformance.checks.shape import chat_members, chat_nullable_members
from tidegate.conformance.checks.stream_order import is_json_answer
from tidegate.conformance.checks.usage import (
    counts_growing_prompts,
    counts_same_prompt,
    is_cut_at,
    says_that_it_was_cut,
)
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT,)
_SYSTEM = {"role": "system", "content": "You answer with names of colours that begin with the letter b."}
_USER = {"role": "user", "content": QUESTION}
_HISTORY = (
    {"role": "user", "content": "Which colour has a ripe banana?"},
    {"role": "assistant", "content": "A ripe banana is yellow."},
)
_ONE_STREAMED = streamed(chat_body(max_tokens=1), usage=True)
_NEW_LIMIT = {name: part for name, part in chat_body(max_completion_tokens=4).items() if name != "max_tokens"}
_LINES = ("Name three colours.", "Then name three fruits.")


def _messages(*messages: Mapping[str, Any]) -> dict[str, Any]:
    return chat_body(messages=list(messages))


CASES: tuple[Case, ...] = (
    Case(
        id="chat.object",
        title="A chat completion has every member that carries something, with its type and one of its values",
        why="Typed clients refuse an answer that lacks a member or has another type in its place.",
        clauses=("openai:chat.object",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_CHAT,
        asks=(Ask(body=chat_body()),),
        expects=(*generated(), expect(chat_members)),
    ),
    Case(
        id="chat.nullable_members",
        title="Members that may be null are there: logprobs of a choice, refusal of a message",
        why="Clients made from the schema read them without asking whether they are there.",
        clauses=("openai:chat.object",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=(Ask(body=chat_body()),),
        expects=(*generated(), expect(chat_nullable_members)),
    ),
    Case(
        id="chat.media_type",
        title="A whole answer is application/json",
        why="Clients choose by the media type whether they read JSON, text, or events.",
        clauses=("openai:chat.media_type",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_CHAT,
        asks=(Ask(body=chat_body()), Ask(name="off", body=chat_body(stream=False))),
        expects=(*generated("it", "off"), expect(is_json_answer), expect(is_json_answer, "off")),
    ),
    Case(
        id="chat.own_ids",
        title="Two answers have two ids",
        why="Logs, caches and bills that go by the id take two answers for one.",
        clauses=("openai:chat.id",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=1), copies=3),),
        expects=(*generated(), expect_over(has_distinct, "it", member="id")),
    ),
    Case(
        id="chat.created",
        title="created is the time of the answer in whole seconds since 1970",
        why="Clients that store answers by time put them into another century when it is in milliseconds, or zero.",
        clauses=("openai:chat.created",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=1)),),
        expects=(*generated(), expect(was_created_now)),
    ),
    Case(
        id="chat.model",
        title="The answer names the model that was asked for",
        why="Clients that record which model answered record another one.",
        clauses=("tidegate:chat.model",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=1)),),
        expects=(*generated(), expect(names_its_model)),
    ),
    Case(
        id="chat.history_read",
        title="Every message of a conversation is read: each one adds to the prompt's tokens",
        why="A server that keeps only the last message answers as if the conversation had just begun.",
        clauses=("openai:chat.messages", "openai:usage.members"),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            # A system message in each: templates may put one of their own where there is none.
            Ask(name="alone", body=_messages(_SYSTEM, _USER), is_refusable=True),
            Ask(name="turn", body=_messages(_SYSTEM, *_HISTORY, _USER), is_refusable=True),
            Ask(name="it", body=_messages(_SYSTEM, *_HISTORY, *_HISTORY, _USER), is_refusable=True),
        ),
        expects=(*generated("alone", "turn", "it"), expect(counts_growing_prompts, "alone", "turn", "it")),
    ),
    Case(
        id="chat.system_read",
        title="A system message is read",
        why="Instructions of the application are lost without a word, and the model does what the user alone says.",
        clauses=("openai:chat.messages",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            Ask(name="short", body=_messages({"role": "system", "content": "Be kind."}, _USER), is_refusable=True),
            Ask(name="it", body=_messages(_SYSTEM, _USER), is_refusable=True),
        ),
        expects=(*generated("short", "it"), expect(counts_growing_prompts, "short", "it")),
    ),
    Case(
        id="chat.developer_read",
        title="A developer message is read, as a system message is",
        why="Current clients send their instructions in this role; where it is dropped, so are they.",
        clauses=("openai:chat.messages",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            Ask(name="short", body=_messages({"role": "developer", "content": "Be kind."}, _USER), is_refusable=True),
            Ask(name="it", body=_messages({**_SYSTEM, "role": "developer"}, _USER), is_refusable=True),
        ),
        expects=(*generated("short", "it"), expect(counts_growing_prompts, "short", "it")),
    ),
    Case(
        id="chat.assistant_read",
        title="Earlier answers of the assistant are read",
        why="The model contradicts itself, for it never sees what it said before.",
        clauses=("openai:chat.messages",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            Ask(
                name="short",
                body=_messages(_HISTORY[0], {"role": "assistant", "content": "Yellow."}, _USER),
                is_refusable=True,
            ),
            Ask(name="it", body=_messages(*_HISTORY, _USER), is_refusable=True),
        ),
        expects=(*generated("short", "it"), expect(counts_growing_prompts, "short", "it")),
    ),
    Case(
        id="chat.parts_read",
        title="Content may be a list of text parts, and each part is read",
        why="Clients that always send parts lose all but the first.",
        clauses=("openai:chat.content_parts",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(
            Ask(name="one", body=_messages({"role": "user", "content": [{"type": "text", "text": _LINES[0]}]})),
            Ask(
                name="it",
                body=_messages({"role": "user", "content": [{"type": "text", "text": line} for line in _LINES]}),
            ),
        ),
        expects=(*generated("one", "it"), expect(counts_growing_prompts, "one", "it")),
    ),
    Case(
        id="chat.parts_joined",
        title="Text parts are the same prompt as their texts joined with a line break",
        why="The same words give other answers by the way in which a client puts them.",
        clauses=("tidegate:chat.parts",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_CHAT,
        asks=(
            Ask(name="joined", body=_messages({"role": "user", "content": "\n".join(_LINES)})),
            Ask(name="again", body=_messages({"role": "user", "content": "\n".join(_LINES)}), wave=1),
            Ask(
                name="it",
                body=_messages({"role": "user", "content": [{"type": "text", "text": line} for line in _LINES]}),
            ),
        ),
        expects=(
            *generated("joined", "again", "it"),
            expect(counts_same_prompt, "joined", "it"),
            expect(is_like_repeated, "joined", "again", "it"),
        ),
        turn=Turn.ALONE,
        tries=2,
    ),
    Case(
        id="chat.max_tokens",
        title="max_tokens cuts the answer at exactly that many tokens, with finish_reason length",
        why="Answers cost more than their caller allowed, or are cut without saying so.",
        clauses=("openai:chat.max_tokens", "openai:chat.finish_length"),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=4)),),
        expects=(*generated(), expect(is_cut_at, num_tokens=4)),
        tries=2,
    ),
    Case(
        id="chat.finish_length",
        title="An answer that its token limit cuts says length",
        why="A client takes half an answer for a whole one, and never asks for the rest.",
        clauses=("openai:chat.finish_length",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=4)), Ask(name="longer", body=chat_body())),
        expects=(*generated("it", "longer"), expect(says_that_it_was_cut, "it", "longer")),
        tries=2,
    ),
    Case(
        id="chat.one_token",
        title="A limit of one token gives one token",
        why="The least limit is where a server that counts from the wrong end is off by one.",
        clauses=("openai:chat.max_tokens", "openai:chat.finish_length"),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=1)), Ask(name="streamed", body=_ONE_STREAMED)),
        expects=(
            *generated("it", "streamed"),
            expect(is_cut_at, num_tokens=1),
            expect(is_cut_at, "streamed", num_tokens=1),
        ),
        tries=2,
    ),
    Case(
        id="chat.max_completion_tokens",
        title="max_completion_tokens cuts the answer as max_tokens does",
        why="Current clients send only this one; ignored, answers run on to the model's end.",
        clauses=("openai:chat.max_completion_tokens",),
        severity=Severity.WRONG_BILL,
        needs=_CHAT,
        asks=(Ask(body=_NEW_LIMIT, is_refusable=True),),
        expects=(*generated(), expect(is_cut_at, num_tokens=4)),
        tries=2,
    ),
    Case(
        id="chat.max_completion_wins",
        title="Where both limits are given, max_completion_tokens holds",
        why="A client that sends both for old servers' sake gets an answer of another length.",
        clauses=("tidegate:parameters.max_completion_tokens",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_CHAT,
        asks=(
            Ask(name="less", body=chat_body(max_tokens=9, max_completion_tokens=3)),
            Ask(name="more", body=chat_body(max_tokens=3, max_completion_tokens=6)),
        ),
        expects=(
            *generated("less", "more"),
            expect(is_cut_at, "less", num_tokens=3),
            expect(is_cut_at, "more", num_tokens=6),
        ),
        tries=2,
    ),
    Case(
        id="chat.fingerprint",
        title="system_fingerprint is the served revision, which the header tells too",
        why="Callers that compare answers over time cannot see that the model behind them has changed.",
        clauses=("tidegate:headers.revision",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_CHAT,
        asks=(Ask(body=chat_body(max_tokens=2)), Ask(name="streamed", body=_ONE_STREAMED)),
        expects=(*generated("it", "streamed"), expect(names_its_revision), expect(names_its_revision, "streamed")),
    ),
)
