"""What `/v1/contract` answers: the tables of the rules and the effective settings, put into one description.

Decides nothing about requests. Everything it says is taken from what decides: the field rules, the header rules, the
error table, the limits. It is told the engine's facts and who asks; a caller is shown the models and routes of its key.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from tidegate.contract import headers
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.error_table import ERROR_TABLE, Retry
from tidegate.contract.header_table import REQUEST_HEADERS, RESPONSE_HEADERS
from tidegate.contract.operations import OPERATIONS, Operation
from tidegate.contract.self_description import (
    Caller,
    Deadlines,
    DescribedEngine,
    DescribedError,
    DescribedHeader,
    DescribedModel,
    DescribedReading,
    DescribedRoute,
    FieldUse,
    Headers,
    Idempotency,
    RetryAdvice,
    RevisionParts,
    SamplingDefaults,
    SelfDescription,
    ServedEndpoint,
    Streaming,
    StructuredOutput,
    TokenCounts,
    UnknownFields,
)
from tidegate.contract.tokenize import DetokenizeRequest, TokenizeRequest
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.errors import QueueFull
from tidegate.grammar.schema.formats import ENFORCED_FORMATS
from tidegate.grammar.schema.schema_support import ENFORCED
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.sampling import SamplingParams
from tidegate.lifecycle.principal import Principal
from tidegate.serving.constraint_rules import KINDS
from tidegate.serving.field_rule import NOT_BY_ENGINE, FieldRule, Use
from tidegate.serving.header_rules import NOT_SERVED as UNSERVED_HEADERS
from tidegate.serving.model_tasks import classify_method, embedding_reason, score_method, unserved_reason
from tidegate.serving.published_limits import LimitSources, describe_limits
from tidegate.serving.reading_rules import READING_RULES
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.request_rules import CHAT_RULES, COMPLETION_RULES, LOST_INPUTS, REPLACED_FIELDS
from tidegate.serving.served_model import ServedModel
from tidegate.serving.server_facts import EngineFact, ServerFacts
from tidegate.serving.template_arguments import effort_reason
from tidegate.text.thinking_switch import EFFORT

_RULES: Mapping[type[Struct], Mapping[str, FieldRule[Any]]] = {
    ChatRequest: CHAT_RULES,
    CompletionRequest: COMPLETION_RULES,
    **READING_RULES,
}
_ACTS = FieldUse(use="acts")
_OWN_TEMPLATE_ONLY = FieldUse(use="not_served", reason="this server uses the model's own template only")
_NO_SCRIPT = FieldUse(use="not_served", reason="only the scripted engine takes a script")
_TOOLS = frozenset({"tools", "functions"})
_NO_PLACE_FOR_TOOLS = FieldUse(use="not_served", reason="the model's chat template has no place for tools")
_CONSTRAINTS = frozenset({"response_format", "structured_outputs"})
_RETRIES: dict[Retry, RetryAdvice] = {
    Retry.NO: "never",
    Retry.LATER: "later",
    Retry.IF_NOTHING_SENT: "if_nothing_sent",
}


def describe_contract(
    model: ServedModel,
    info: ModelInfo | None,
    facts: ServerFacts,
    unknown_policy: UnknownFieldPolicy,
    principal: Principal,
    engines: Sequence[EngineFact] = (),
) -> SelfDescription:
    """Returns the description for `principal`. `info` is None while the engine is starting. `engines` are those of a
    model that has several.
    """
    operations = [one for one in OPERATIONS if _may_use(principal, one)]
    models = _models(model, info, principal, operations, engines)
    return SelfDescription(
        contract=headers.CONTRACT_VERSION,
        server=facts.version,
        caller=_caller(principal),
        models=models,
        default_model=models[0].id if models else None,
        routes=[DescribedRoute(method=one.method, path=one.path, needs_key=one.needs_key) for one in operations],
        limits=describe_limits(
            LimitSources(
                limits=model.limits,
                facts=facts,
                info=info,
                quotas=principal.quotas,
                has_scripts=model.is_scripted,
                grammar_reason=model.grammar_reason(info),
                grammar_backend=model.grammar.backend,
            )
        ),
        unknown_fields=_unknown_fields(unknown_policy),
        sampling_defaults=_sampling_defaults(facts),
        structured_output=_structured_output(model, info),
        idempotency=_idempotency(facts),
        deadlines=_deadlines(facts, principal),
        streaming=Streaming(
            status_hold_s=facts.status_hold_s,
            heartbeat_s=facts.heartbeat_s,
            unsent_bytes=facts.unsent_bytes,
            slow_client_timeout_s=facts.slow_client_timeout_s,
        ),
        headers=_headers(),
        errors=_errors(facts),
    )


def field_uses(
    request: type[Struct],
    *,
    has_scripts: bool,
    policy: RequestPolicy,
    grammar_reason: str | None = None,
    shows_tools: bool = True,
) -> dict[str, FieldUse]:
    """Returns what becomes of every field of a request type. Raises KeyError for a type without a table.

    `grammar_reason` says why constrained output is not served, None where it is. `shows_tools`: the model can be shown
    tools, by its template or by a system message.
    """
    if request in (TokenizeRequest, DetokenizeRequest):
        uses = dict.fromkeys(request.__struct_fields__, _ACTS)
    else:
        uses = {name: _field_use(_RULES[request][name]) for name in request.__struct_fields__}
    if "chat_template" in uses and not policy.allows_chat_template:
        uses["chat_template"] = _OWN_TEMPLATE_ONLY
    if not shows_tools:
        uses |= dict.fromkeys(_TOOLS & uses.keys(), _NO_PLACE_FOR_TOOLS)
    if grammar_reason is not None:
        uses |= {name: FieldUse(use="not_served", reason=grammar_reason) for name in _CONSTRAINTS & uses.keys()}
    unserved = FieldUse(use="not_served", reason=NOT_BY_ENGINE)
    uses |= {name: unserved for name in policy.unserved_fields & uses.keys() if uses[name] == _ACTS}
    if "x_script" in uses and not has_scripts:
        uses["x_script"] = _NO_SCRIPT
    return uses


def _effort_told(uses: dict[str, FieldUse], model: ServedModel) -> dict[str, FieldUse]:
    """Adds what the model's chat template knows of levels of reasoning."""
    if EFFORT not in uses:
        return uses
    template = model.templates.select(has_tools=False)
    reason = effort_reason(template, tells_reasoning=model.formats.tells_reasoning)
    is_served = reason is None or template.capabilities.thinking_switch is not None
    told = FieldUse(use="acts" if is_served else "not_served", reason=UNSET if reason is None else reason)
    return {**uses, EFFORT: told}


def _field_use(rule: FieldRule[Any]) -> FieldUse:
    match rule.use:
        case Use.ACTS:
            return _ACTS
        case Use.NO_EFFECT:
            return FieldUse(use="no_effect")
        case Use.NOT_SERVED:
            return FieldUse(use="not_served", reason=UNSET if rule.reason is None else rule.reason)


def _may_use(principal: Principal, operation: Operation) -> bool:
    return not operation.needs_key or principal.routes is None or operation.path in principal.routes


def _caller(principal: Principal) -> Caller:
    return Caller(
        name=principal.name,
        models=None if principal.models is None else sorted(principal.models),
        routes=None if principal.routes is None else sorted(principal.routes),
        priority_min=principal.priority_min,
        priority_max=principal.priority_max,
    )


def _models(
    model: ServedModel,
    info: ModelInfo | None,
    principal: Principal,
    operations: list[Operation],
    engines: Sequence[EngineFact],
) -> list[DescribedModel]:
    names = [name for name in model.names if principal.models is None or name in principal.models]
    if not names:
        return []
    unserved = frozenset() if info is None else frozenset(info.unserved_fields)
    policy = RequestPolicy(model.limits, unserved_fields=unserved)
    endpoints = [
        ServedEndpoint(
            method=one.method,
            path=one.path,
            streams=one.chunk is not None,
            fields=_effort_told(
                field_uses(
                    one.request,
                    has_scripts=model.is_scripted,
                    policy=policy,
                    grammar_reason=model.grammar_reason(info),
                    shows_tools=model.shows_tools,
                ),
                model,
            ),
        )
        for one in operations
        if one.request is not None and (info is None or unserved_reason(one.path, info) is None)
    ]
    return [
        DescribedModel(
            id=names[0],
            aliases=names[1:],
            revision=None if info is None else model.revision(info),
            revision_parts=_revision_parts(model, info),
            context_length=None if info is None else info.max_model_len,
            vocabulary_size=None if info is None else info.vocab_size,
            input_modalities=["text"],
            output_modalities=_outputs(info),
            reasoning_field=model.formats.reasoning_field if model.formats.tells_reasoning else None,
            token_counts=TokenCounts(exact=not model.is_scripted),
            reading=None if info is None else _reading(model, info),
            endpoints=endpoints,
            limits={},
            structured_output=_structured_output(model, info),
            engines=[_engine(model, one) for one in engines],
        )
    ]


def _engine(model: ServedModel, fact: EngineFact) -> DescribedEngine:
    revision = None if fact.model is None else model.revision(fact.model)
    return DescribedEngine(name=fact.name, ready=fact.is_ready, revision=revision)


def _outputs(info: ModelInfo | None) -> list[str]:
    if info is None or (info.generates and embedding_reason(info) is not None):
        return ["text"]
    written = ["text"] if info.generates else []
    return written + (["embedding"] if embedding_reason(info) is None else ["scores"])


def _reading(model: ServedModel, info: ModelInfo) -> DescribedReading:
    pooling, scores_by, classifies_by = info.pooling, score_method(info), classify_method(info)
    has_embeddings = pooling is not None and embedding_reason(info) is None
    return DescribedReading(
        pooling=None if pooling is None else pooling.mode.value,
        dimensions=pooling.dimensions if pooling is not None and has_embeddings else None,
        min_dimensions=model.min_dimensions if has_embeddings else None,
        max_input_tokens=None if pooling is None else pooling.max_input_tokens,
        scores_by=None if scores_by is None else scores_by.value,
        classifies_by=None if classifies_by is None else classifies_by.value,
        labels=[] if pooling is None else list(pooling.labels),
    )


def _revision_parts(model: ServedModel, info: ModelInfo | None) -> RevisionParts:
    return RevisionParts(
        weights=None if info is None else info.weights_digest,
        tokenizer=model.tokenizer_digest,
        chat_template=model.template_digest,
        tool_format=model.formats.tool_name,
        reasoning_format=model.formats.reasoning_name,
        grammar_backend=model.grammar_backend(info),
        engine=None if info is None else info.build,
    )


def _unknown_fields(policy: UnknownFieldPolicy) -> UnknownFields:
    refused = dict.fromkeys(LOST_INPUTS, "text or token ids") | REPLACED_FIELDS
    return UnknownFields(policy=policy.value, refused=dict(sorted(refused.items())))


def _sampling_defaults(facts: ServerFacts) -> SamplingDefaults:
    plain = SamplingParams()
    return SamplingDefaults(
        source=facts.sampling_defaults,
        temperature=plain.temperature,
        top_p=plain.top_p,
        top_k=plain.top_k,
        min_p=plain.min_p,
        presence_penalty=plain.presence_penalty,
        frequency_penalty=plain.frequency_penalty,
        repetition_penalty=plain.repetition_penalty,
    )


def _structured_output(model: ServedModel, info: ModelInfo | None) -> StructuredOutput:
    reason = model.grammar_reason(info)
    if reason is not None:
        return StructuredOutput(
            served=False,
            backend=None,
            required=model.grammar.is_required,
            kinds=[],
            enforced_keywords=[],
            reason=reason,
        )
    return StructuredOutput(
        served=True,
        backend=model.grammar_backend(info),
        required=model.grammar.is_required,
        kinds=list(KINDS),
        enforced_keywords=sorted(ENFORCED),
        enforced_formats=sorted(ENFORCED_FORMATS),
    )


def _idempotency(facts: ServerFacts) -> Idempotency:
    ledger = facts.idempotency
    if ledger is None or headers.IN_IDEMPOTENCY_KEY in UNSERVED_HEADERS:
        return Idempotency(
            served=False,
            store=None,
            retention_s=None,
            max_entries=None,
            max_bytes=None,
            max_answer_bytes=None,
            when_full=None,
        )
    return Idempotency(
        served=True,
        store=ledger.store,
        retention_s=ledger.retention_s,
        max_entries=ledger.max_entries,
        max_bytes=ledger.max_bytes,
        max_answer_bytes=ledger.max_answer_bytes,
        when_full=ledger.when_full,
    )


def _deadlines(facts: ServerFacts, principal: Principal) -> Deadlines:
    return Deadlines(
        served=headers.IN_DEADLINE_MS not in UNSERVED_HEADERS,
        max_ms=facts.deadline_max_ms,
        first_token_max_ms=facts.first_token_max_ms,
        key_max_ms=principal.deadline_max_ms,
    )


def _headers() -> Headers:
    return Headers(
        request={
            name: DescribedHeader(served=name.lower() not in UNSERVED_HEADERS, meaning=row.meaning)
            for name, row in REQUEST_HEADERS.items()
        },
        response={name: DescribedHeader(served=True, meaning=row.meaning) for name, row in RESPONSE_HEADERS.items()},
    )


def _errors(facts: ServerFacts) -> dict[str, DescribedError]:
    return {
        row.code: DescribedError(
            status=facts.queue_full_status if kind is QueueFull else row.status,
            type=row.type,
            retry=_RETRIES[row.retry],
        )
        for kind, row in ERROR_TABLE.items()
    }
