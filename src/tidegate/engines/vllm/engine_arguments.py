"""What vLLM is started with: the operator's options, and ours, which no option may replace.

Ours follow from settings that hold for every engine, or make vLLM keep the contract: log-probabilities before any
processing, one more alternative than callers may ask for, the grammar backend that refuses what it cannot enforce,
priorities that count. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_LOGPROBS = 21
"""20 alternatives are served, and of one more than asked for the best are taken."""

_ONLY_OURS = "it belongs to what this server promises"
_GATE = "what waits, waits in this server: see [admission]"
TAKEN: dict[str, str] = {
    "model": "give it as MODEL",
    "served_model_name": "it is model.served_model_name",
    "tokenizer": "it is model.tokenizer",
    "max_model_len": "it is model.max_model_len",
    "max_num_seqs": "it is engine.max_sequences",
    "enable_prefix_caching": "it is engine.prefix_cache",
    "scheduling_policy": "it is admission.policy",
    "shutdown_timeout": "it is server.drain_timeout_s",
    "max_num_queued_reqs": _GATE,
    "max_num_queued_tokens": _GATE,
    **dict.fromkeys(
        (
            *("max_logprobs", "logprobs_mode", "structured_outputs_config", "disable_log_stats", "enable_log_requests"),
            *("skip_tokenizer_init", "generation_config", "override_generation_config", "tokens_only", "runner"),
            *("reasoning_parser", "reasoning_parser_plugin", "reasoning_config", "watermark_config", "log_config_file"),
        ),
        _ONLY_OURS,
    ),
}
"""Options that an operator cannot give, and where the same thing is said instead."""


class UnusableOptions(Exception):
    """An option that cannot be given; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class VllmPlan:
    """How vLLM is to be started. `model` is a folder or a Hugging Face id, `tokenizer` the folder that is served."""

    model: str
    tokenizer: str
    max_sequences: int
    max_model_len: int | None = None
    keeps_prefixes: bool = True
    has_priorities: bool = True
    drain_s: int = 60
    options: Mapping[str, Any] = field(default_factory=dict)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises UnusableOptions for an option that is ours."""
    for name in options:
        if name in TAKEN:
            raise UnusableOptions(f"engine.options cannot hold {name}: {TAKEN[name]}")


def engine_arguments(plan: VllmPlan) -> dict[str, Any]:
    """Returns the arguments of `AsyncEngineArgs`. Raises UnusableOptions."""
    check_options(plan.options)
    arguments: dict[str, Any] = {
        **plan.options,
        "model": plan.model,
        "tokenizer": plan.tokenizer,
        "max_num_seqs": plan.max_sequences,
        "enable_prefix_caching": plan.keeps_prefixes,
        "scheduling_policy": "priority" if plan.has_priorities else "fcfs",
        "max_logprobs": MAX_LOGPROBS,
        "logprobs_mode": "raw_logprobs",
        "structured_outputs_config": {"backend": "guidance"},
        "shutdown_timeout": plan.drain_s,
        "disable_log_stats": True,
    }
    if plan.max_model_len is not None:
        arguments["max_model_len"] = plan.max_model_len
    return arguments
