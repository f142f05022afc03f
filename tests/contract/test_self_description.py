"""`GET /v1/contract` says what the tables of the code say, for every field, limit, header, error and route."""

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from tidegate.cli.described_settings import server_facts
from tidegate.cli.model_loading import load_model
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve
from tidegate.contract.codec import encode_json
from tidegate.contract.error_table import ERROR_TABLE
from tidegate.contract.json_schema import answer_schema, closed
from tidegate.contract.operations import OPERATIONS
from tidegate.contract.self_description import SCHEMA_ID, SelfDescription
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo, PoolingMode
from tidegate.lifecycle.principal import ANONYMOUS, Principal, Quotas
from tidegate.serving.describe import describe_contract, field_uses
from tidegate.serving.published_limits import ONLY_OF_SCRIPTS, PUBLISHED_LIMITS
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.server_facts import IdempotencyFacts

ROOT = Path(__file__).parents[2]
POOLING = PoolingInfo(PoolingMode.MEAN, 8, 512)
INFO = ModelInfo(258, 4096, (257,), 8, 128, 16, "feed", "simulated 1", pooling=POOLING)
SECTION_12 = (
    *("body_bytes", "json_depth", "messages", "prompts", "choices", "stop_strings", "logit_bias_entries", "tools"),
    *("tool_bytes", "schema_bytes", "schema_depth", "grammar_compile_ms", "template_ms", "template_bytes"),
    *("context_length", "max_output_tokens", "media_bytes", "concurrency", "requests_per_minute", "tokens_per_minute"),
    *("queue_depth", "queued_tokens", "queue_deadline_ms"),
)
"""The names of CONTRACT.md, section 12."""


def settings_of(**flags: Any) -> Settings:
    named = {"engine.kind": "simulated"} | {name.replace("__", "."): value for name, value in flags.items()}
    return resolve(None, {}, named, is_file_required=False).settings


def describe(
    principal: Principal = ANONYMOUS,
    info: ModelInfo | None = INFO,
    idempotency: IdempotencyFacts | None = None,
    **flags: Any,
) -> SelfDescription:
    settings = settings_of(**flags)
    served = load_model(settings).served
    policy = UnknownFieldPolicy(settings.api.unknown_fields)
    return describe_contract(served, info, server_facts(settings, idempotency), policy, principal)


def as_json(description: SelfDescription) -> Any:
    return json.loads(encode_json(description))


@pytest.mark.parametrize("info", [INFO, None], ids=["ready", "starting"])
@pytest.mark.parametrize("engine", ["scripted", "simulated"])
def test_the_answer_is_an_instance_of_the_published_schema(engine: str, info: ModelInfo | None) -> None:
    published = json.loads((ROOT / "docs/contract.schema.json").read_text("utf-8"))
    answer = as_json(describe(info=info, engine__kind=engine))
    assert answer["schema"] == published["$id"]
    jsonschema_rs.validate(closed(published), answer)


def test_the_published_schema_is_the_codes() -> None:
    published = json.loads((ROOT / "docs/contract.schema.json").read_text("utf-8"))
    assert published == answer_schema(SelfDescription, SCHEMA_ID), "tidegate openapi --document contract --output FILE"
    jsonschema_rs.meta.validate(published)


def test_the_schema_notices_what_is_missing_or_wrong() -> None:
    schema = answer_schema(SelfDescription, SCHEMA_ID)
    answer = as_json(describe())
    for broken in (
        {name: value for name, value in answer.items() if name != "limits"},
        answer | {"object": "else"},
        answer | {"limits": {"messages": {"value": "many"}}},
        answer | {"models": [answer["models"][0] | {"endpoints": None}]},
    ):
        assert not jsonschema_rs.is_valid(schema, broken)


def test_every_limit_of_the_contract_is_there_with_its_effective_value() -> None:
    changed: dict[str, Any] = {
        "body_bytes": 5000,
        "json_depth": 9,
        "messages": 7,
        "prompts": 6,
        "choices": 5,
        "template_ms": 44,
        "template_bytes": 3000,
    }
    limits = describe(
        Principal("k", "k", quotas=Quotas(concurrency=3, requests_per_minute=60, tokens_per_minute=9000)),
        model__max_output_tokens=77,
        admission__queue_depth=11,
        admission__queued_tokens=1234,
        admission__queue_deadline_ms=55,
        **{f"limits__{name}": value for name, value in changed.items()},
    ).limits
    assert set(SECTION_12) <= limits.keys()
    expected = changed | {
        "max_output_tokens": 77,
        "queue_depth": 11,
        "queued_tokens": 1234,
        "queue_deadline_ms": 55,
        "concurrency": 3,
        "requests_per_minute": 60,
        "tokens_per_minute": 9000,
        "context_length": INFO.max_model_len,
    }
    assert {name: limits[name].value for name in expected} == expected


def test_a_limit_that_is_not_enforced_says_why_and_one_that_is_names_an_error_code() -> None:
    description = describe()
    for name, limit in description.limits.items():
        assert limit.code is None if not limit.enforced else limit.code in description.errors, name
        assert limit.enforced == (limit.reason is msgspec.UNSET), name
    unenforced = {name for name, limit in description.limits.items() if not limit.enforced}
    assert unenforced == {
        *(name for name in PUBLISHED_LIMITS if name.startswith(("schema_", "grammar_"))),
        "media_bytes",
    }


def limit_names_in(tree: ast.AST) -> set[str]:
    """Names that a module puts into errors as `limit.name`, where they are written as text."""
    places = {"LimitFact": 0, "over_limit": 1}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places:
            place = places[node.func.id]
            given = [*node.args[place : place + 1], *(one.value for one in node.keywords if one.arg == "name")]
            names.update(one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return names


def test_every_limit_that_an_error_can_name_is_published() -> None:
    files = (ROOT / "src" / "tidegate").rglob("*.py")
    used = set().union(*(limit_names_in(ast.parse(file.read_text("utf-8"))) for file in files))
    assert len(used) > 15
    assert used <= PUBLISHED_LIMITS.keys()


def test_limits_of_scripts_are_only_the_scripted_engines() -> None:
    assert describe(engine__kind="scripted").limits.keys() >= ONLY_OF_SCRIPTS
    assert not ONLY_OF_SCRIPTS & describe().limits.keys()


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.request], ids=lambda one: one.name)
def test_every_body_field_of_a_route_is_described(operation: Any) -> None:
    endpoint = next(one for one in describe().models[0].endpoints if one.path == operation.path)
    assert list(endpoint.fields) == list(operation.request.__struct_fields__)
    assert endpoint.streams == (operation.chunk is not None)
    for use in endpoint.fields.values():
        assert (use.use == "not_served") == (use.reason is not msgspec.UNSET)


def test_a_script_and_a_template_of_the_callers_are_served_where_they_are() -> None:
    chat = OPERATIONS[0].request
    assert chat is not None
    for has_scripts in (True, False):
        uses = field_uses(chat, has_scripts=has_scripts, policy=RequestPolicy(allows_chat_template=has_scripts))
        expected = "acts" if has_scripts else "not_served"
        assert (uses["x_script"].use, uses["chat_template"].use) == (expected, expected)


def test_a_key_sees_the_models_routes_and_bounds_that_are_its_own() -> None:
    key = Principal(
        "k1",
        "batch",
        models=frozenset({"b"}),
        routes=frozenset({"/v1/completions", "/v1/contract"}),
        priority_min=5,
        priority_max=9,
        deadline_max_ms=2500,
    )
    told = describe(key, model__served_model_name=("a", "b", "c"), deadlines__max_ms=9000)
    assert [(model.id, model.aliases) for model in told.models] == [("b", [])]
    assert [one.path for one in told.models[0].endpoints] == ["/v1/completions"]
    assert [one.path for one in told.routes] == ["/v1/completions", "/v1/contract", "/healthz", "/health"]
    assert (told.caller.name, told.caller.priority_min, told.caller.priority_max) == ("batch", 5, 9)
    assert (told.deadlines.max_ms, told.deadlines.key_max_ms) == (9000, 2500)
    assert describe(replace(key, models=frozenset({"z"}))).models == []


def test_what_the_engine_knows_is_null_until_it_has_said_so() -> None:
    model = describe(info=None).models[0]
    assert (model.revision, model.context_length, model.vocabulary_size) == (None, None, None)
    assert (model.revision_parts.weights, model.revision_parts.engine) == (None, None)
    ready = describe().models[0]
    assert (ready.revision_parts.weights, ready.revision_parts.engine) == ("feed", "simulated 1")


def test_every_error_code_is_told_with_its_status_and_advice() -> None:
    errors = describe(admission__queue_full_status=503).errors
    assert errors.keys() == {row.code for row in ERROR_TABLE.values()}
    assert errors["queue_full"].status == 503
    assert (errors["engine_lost"].retry, errors["no_capacity"].retry) == ("if_nothing_sent", "later")


@pytest.mark.parametrize("policy", ["report", "reject", "ignore"])
def test_the_policy_on_unknown_fields_is_the_settings(policy: str) -> None:
    told = describe(api__unknown_fields=policy).unknown_fields
    assert told.policy == policy
    assert told.refused["guided_json"] == "structured_outputs"


def test_streaming_and_idempotency_are_the_settings() -> None:
    ledger = IdempotencyFacts("sqlite", 60, 10, 1000, 500, "a new key is refused")
    told = describe(
        server__heartbeat_s=3.5,
        server__status_hold_s=2.5,
        server__unsent_bytes=4096,
        server__slow_client_timeout_s=1.5,
        idempotency=ledger,
    )
    streaming = told.streaming
    assert (streaming.heartbeat_s, streaming.status_hold_s) == (3.5, 2.5)
    assert (streaming.unsent_bytes, streaming.slow_client_timeout_s) == (4096, 1.5)
    if told.idempotency.served:
        assert (told.idempotency.retention_s, told.idempotency.when_full) == (60, "a new key is refused")
    assert not describe().idempotency.served
