"""The limits of `/v1/contract`: name, value, scope, and whether what they bound is served (CONTRACT.md section 12).

The names are those of `limit.name` in errors. A limit of something that is not served is listed with the value that it
will have, so that callers can prepare; it is marked as not enforced, with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import UNSET

from tidegate import errors
from tidegate.contract.bounds import Limits
from tidegate.contract.error_table import ERROR_TABLE
from tidegate.contract.json_size import MAX_ELEMENTS, MAX_MEMBERS
from tidegate.contract.self_description import DescribedLimit, LimitScope, LimitUnit
from tidegate.grammar.json_text import MAX_SCHEMA_NODES
from tidegate.grammar.lark.lark_bounds import MAX_LARK_DEPTH, MAX_LARK_RULES
from tidegate.grammar.schema.counted_lengths import MAX_COUNTED_LENGTHS
from tidegate.grammar.schema.lowered_bounds import MAX_MULTIPLE, MAX_PROPERTIES, MAX_RULE_DEPTH
from tidegate.grammar.schema.lowering import MAX_COMBINATIONS
from tidegate.grammar.xgrammar.schema_ebnf import MAX_COUNTED, MAX_EBNF_BYTES
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.principal import Quotas
from tidegate.serving.prompt_rules import MAX_TOKENIZE_CHARACTERS
from tidegate.serving.script_rules import MAX_CONTROLS, MAX_SCRIPT_TOKENS
from tidegate.serving.server_facts import ServerFacts

NO_MEDIA = "the served model takes text only"


@dataclass(frozen=True, slots=True)
class LimitSources:
    """Where values come from. `info` is None while the engine is starting; `has_scripts` of the scripted engine.

    `grammar_reason` says why constrained output is not served, None where it is.
    """

    limits: Limits
    facts: ServerFacts
    info: ModelInfo | None
    quotas: Quotas
    has_scripts: bool = False
    grammar_reason: str | None = None
    grammar_backend: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedLimit:
    """`reason` says why it is not enforced; None where it is. `is_of_grammars`: enforced where grammars are."""

    value: Callable[[LimitSources], int | None]
    unit: LimitUnit
    error: type[errors.ServeError] = errors.InvalidValue
    scope: LimitScope = "request"
    reason: str | None = None
    is_of_grammars: bool = False
    only_of: str | None = None
    """The one grammar backend that needs it."""

    def why_not(self, sources: LimitSources) -> str | None:
        reason = sources.grammar_reason if self.is_of_grammars else self.reason
        if reason is None and self.only_of is not None and self.only_of != sources.grammar_backend:
            return f"only the grammar backend {self.only_of} needs it"
        return reason


def _of_limits(name: str) -> Callable[[LimitSources], int | None]:
    return lambda sources: getattr(sources.limits, name)


def _of_facts(name: str) -> Callable[[LimitSources], int | None]:
    return lambda sources: getattr(sources.facts, name)


def _of_quotas(name: str) -> Callable[[LimitSources], int | None]:
    return lambda sources: getattr(sources.quotas, name)


def _fixed(value: int | None) -> Callable[[LimitSources], int | None]:
    return lambda _sources: value


def _of_grammars(
    value: Callable[[LimitSources], int | None], unit: LimitUnit, *, only_of: str | None = None
) -> PublishedLimit:
    return PublishedLimit(value, unit, errors.GrammarTooComplex, is_of_grammars=True, only_of=only_of)


def _ledger_entries(sources: LimitSources) -> int | None:
    ledger = sources.facts.idempotency
    return None if ledger is None else ledger.max_entries


def _context(sources: LimitSources) -> int | None:
    return None if sources.info is None else sources.info.max_model_len


def _input_tokens(sources: LimitSources) -> int | None:
    pooling = None if sources.info is None else sources.info.pooling
    return None if pooling is None else pooling.max_input_tokens


PUBLISHED_LIMITS: dict[str, PublishedLimit] = {
    "uri_bytes": PublishedLimit(_of_facts("uri_bytes"), "bytes", errors.UriTooLong),
    "header_bytes": PublishedLimit(_of_facts("header_bytes"), "bytes", errors.HeadersTooLarge),
    "body_bytes": PublishedLimit(_of_limits("body_bytes"), "bytes", errors.BodyTooLarge),
    "pending_body_bytes": PublishedLimit(_of_facts("pending_body_bytes"), "bytes", errors.NoCapacity, "server"),
    "json_depth": PublishedLimit(_of_limits("json_depth"), "depth"),
    "json_members": PublishedLimit(_fixed(MAX_MEMBERS), "count"),
    "json_elements": PublishedLimit(_fixed(MAX_ELEMENTS), "count"),
    "messages": PublishedLimit(_of_limits("messages"), "count"),
    "prompts": PublishedLimit(_of_limits("prompts"), "count"),
    "inputs": PublishedLimit(_of_limits("inputs"), "count"),
    "labels": PublishedLimit(_of_limits("labels"), "count"),
    "choices": PublishedLimit(_of_limits("choices"), "count"),
    "stop_strings": PublishedLimit(_of_limits("stop_strings"), "count"),
    "logit_bias_entries": PublishedLimit(_of_limits("logit_bias_entries"), "count"),
    "tools": PublishedLimit(_of_limits("tools"), "count"),
    "tool_bytes": PublishedLimit(_of_limits("tool_bytes"), "bytes"),
    "schema_bytes": _of_grammars(_of_limits("schema_bytes"), "bytes"),
    "schema_depth": _of_grammars(_of_limits("schema_depth"), "depth"),
    "schema_nodes": _of_grammars(_fixed(MAX_SCHEMA_NODES), "count"),
    "schema_combinations": _of_grammars(_fixed(MAX_COMBINATIONS), "count"),
    "schema_rule_depth": _of_grammars(_fixed(MAX_RULE_DEPTH), "depth"),
    "schema_properties": _of_grammars(_fixed(MAX_PROPERTIES), "count"),
    "schema_multiple": _of_grammars(_fixed(MAX_MULTIPLE), "count"),
    "schema_lengths": _of_grammars(_fixed(MAX_COUNTED_LENGTHS), "count"),
    "schema_count": _of_grammars(_fixed(MAX_COUNTED), "count", only_of="xgrammar"),
    "grammar_rules": _of_grammars(_fixed(MAX_LARK_RULES), "count", only_of="llguidance"),
    "grammar_depth": _of_grammars(_fixed(MAX_LARK_DEPTH), "depth", only_of="llguidance"),
    "grammar_bytes": _of_grammars(_fixed(MAX_EBNF_BYTES), "bytes", only_of="xgrammar"),
    "grammar_compile_ms": _of_grammars(_of_facts("grammar_compile_ms"), "milliseconds"),
    "template_ms": PublishedLimit(_of_facts("template_ms"), "milliseconds", errors.InvalidTemplateInput),
    "template_bytes": PublishedLimit(_of_facts("template_bytes"), "bytes", errors.InvalidTemplateInput),
    "tokenize_characters": PublishedLimit(_fixed(MAX_TOKENIZE_CHARACTERS), "count"),
    "context_length": PublishedLimit(_context, "tokens", errors.ContextLengthExceeded),
    "input_tokens": PublishedLimit(_input_tokens, "tokens", errors.ContextLengthExceeded),
    "max_output_tokens": PublishedLimit(_of_limits("max_output_tokens"), "tokens"),
    "media_bytes": PublishedLimit(_fixed(None), "bytes", reason=NO_MEDIA),
    "script_tokens": PublishedLimit(_fixed(MAX_SCRIPT_TOKENS), "tokens"),
    "script_controls": PublishedLimit(_fixed(MAX_CONTROLS), "count"),
    "concurrency": PublishedLimit(_of_quotas("concurrency"), "count", errors.RateLimited, "key"),
    "requests_per_minute": PublishedLimit(_of_quotas("requests_per_minute"), "count", errors.RateLimited, "key"),
    "tokens_per_minute": PublishedLimit(_of_quotas("tokens_per_minute"), "tokens", errors.RateLimited, "key"),
    "queue_depth": PublishedLimit(_of_facts("queue_depth"), "count", errors.QueueFull, "server"),
    "queued_tokens": PublishedLimit(_of_facts("queued_tokens"), "tokens", errors.QueueFull, "server"),
    "queue_deadline_ms": PublishedLimit(_of_facts("queue_deadline_ms"), "milliseconds", errors.NoCapacity, "server"),
    "idempotency_entries": PublishedLimit(_ledger_entries, "count", errors.NoCapacity, "server"),
}
"""In the order of the checks."""
ONLY_OF_SCRIPTS = frozenset({"script_tokens", "script_controls"})


def describe_limits(sources: LimitSources) -> dict[str, DescribedLimit]:
    """Returns every published limit with its effective value."""
    return {
        name: DescribedLimit(
            value=row.value(sources),
            unit=row.unit,
            scope=row.scope,
            enforced=row.why_not(sources) is None,
            code=ERROR_TABLE[row.error].code if row.why_not(sources) is None else None,
            reason=UNSET if (reason := row.why_not(sources)) is None else reason,
        )
        for name, row in PUBLISHED_LIMITS.items()
        if sources.has_scripts or name not in ONLY_OF_SCRIPTS
    }
