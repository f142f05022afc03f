"""What spans are told of the engine's work on one call. Names and numbers: no text of prompts, answers or stops."""

from collections.abc import Sequence

from tidegate.observability.traced_facts import TracedWork
from tidegate.serving.choice_reader import ChoiceReader
from tidegate.serving.ending import Story
from tidegate.serving.model_tasks import CHAT
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.usage import TokenCounts

_OPERATIONS = {CHAT: "chat", "/v1/completions": "text_completion", "/v1/embeddings": "embeddings"}
"""The conventions' names; what has none is called like its route."""
_JSON_PARAMS = ("response_format", "structured_outputs.json")
"""Fields of the request that ask for JSON, whatever the schema."""


def trace_work(
    call: PreparedCall,
    story: Story,
    counts: TokenCounts,
    choices: Sequence[ChoiceReader],
    last_token_at: Sequence[float | None],
) -> TracedWork | None:
    """Returns the facts at the end of a call; None where it is not recorded."""
    context = call.context
    if context.trace is None or not context.trace.is_recorded:
        return None
    request = call.prompts[0].request
    generates = call.make_assembler is None
    sampling = request.sampling if generates else None
    last_at = max((at for at in last_token_at if at is not None), default=None)
    return TracedWork(
        operation=_OPERATIONS.get(context.route, context.route.rpartition("/")[2]),
        revision=call.fingerprint,
        entered_s=story.since_receipt(story.entered_at) or 0.0,
        admitted_s=story.since_receipt(story.admitted_at),
        last_token_s=story.since_receipt(last_at),
        left_s=story.since_receipt(story.left_at),
        finish_reasons=tuple(choice.outcome for choice in choices if choice.outcome is not None) if generates else (),
        num_choices=len(choices),
        num_reasoning_tokens=counts.num_reasoning,
        max_tokens=request.stop.max_tokens if generates else None,
        temperature=None if sampling is None else sampling.temperature,
        top_p=None if sampling is None else sampling.top_p,
        top_k=sampling.top_k if sampling is not None and sampling.top_k > 0 else None,
        presence_penalty=None if sampling is None else sampling.presence_penalty,
        frequency_penalty=None if sampling is None else sampling.frequency_penalty,
        seed=call.given_seed,
        output_type=_output_type(call),
    )


def _output_type(call: PreparedCall) -> str | None:
    is_json = call.constraint is not None and call.constraint.param.startswith(_JSON_PARAMS)
    return "json" if is_json else None
