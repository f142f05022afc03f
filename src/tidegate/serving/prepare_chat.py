"""A chat call to a `PreparedCall`: check every field, render the template, tokenize, fix the lengths."""

from dataclasses import replace

from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat
from tidegate.errors import InvalidTemplateInput
from tidegate.ids import mint_id
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.serving.call import Call
from tidegate.serving.chat_prompt import render_chat
from tidegate.serving.constraint import Constraint
from tidegate.serving.header_rules import read_wishes
from tidegate.serving.output_formats import OutputFormats
from tidegate.serving.output_reading import OutputReading, ReadingSource, plan_reading
from tidegate.serving.prepare import ID_ENTROPY_BYTES, Preparation, PromptSource, prepare_prompt
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.prompt_state import PromptState
from tidegate.serving.reasoned_constraint import PlacedConstraint, place_constraint
from tidegate.serving.request_rules import check_chat
from tidegate.serving.sampling_rules import logprob_counts
from tidegate.serving.script_rules import PlannedScript, plan_script
from tidegate.serving.tool_use import ToolUse, tool_use


def prepare_chat(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    wishes = read_wishes(call.headers)
    request, ignored = preparation.decode(call, decode_chat, ChatRequest)
    model = preparation.check_model(request.model, call.principal)
    check_chat(request, preparation.policy)
    preparation.check_generates()
    use = tool_use(request)
    vocabulary = preparation.model.tokenizer.vocabulary
    planned = plan_script(request.x_script, is_scripted=preparation.model.is_scripted, base=vocabulary)
    context = preparation.context(call, "chatcmpl-", wishes, request)
    formats = _formats(preparation, planned)
    constraint = preparation.constraint(request, use, formats.call_format)
    chat = render_chat(request, preparation, use, formats.call_format)
    token_ids, state = chat.token_ids, chat.state
    if planned is not None:
        vocabulary = planned.vocabulary
        token_ids = list(planned.prompt_token_ids) if planned.prompt_token_ids is not None else token_ids
        state = planned.state or state
    if not token_ids:
        raise InvalidTemplateInput("the chat template leaves nothing for the model to read", param="messages")
    source = PromptSource(token_ids, vocabulary, context.request_id, context.priority)
    reading = _reading(use, formats, preparation, planned, state)
    source = replace(source, reading=reading, key_id=context.principal.key_id, hop=context.hop)
    if constraint is not None:
        placed = _place(constraint, preparation, state)
        constraint = placed.constraint
        source = replace(source, constraint=constraint, starts_after=placed.starts_after)
    prompt = prepare_prompt(request, source, preparation, preparation.sampling(request), planned)
    counts = logprob_counts(request)
    options = request.stream_options
    return PreparedCall(
        context=context,
        model=model,
        fingerprint=preparation.fingerprint(),
        prompts=[prompt],
        num_choices=request.n or 1,
        is_stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.continuous_usage_stats),
        num_top=counts.num_output,
        want_token_ids=bool(request.return_token_ids),
        given_seed=request.seed,
        want_prompt_logprobs=counts.returns_prompt,
        ignored_fields=ignored + chat.unread,
        block_tokens=preparation.info.block_tokens,
        constraint=constraint,
        is_legacy=use.is_legacy,
    )


def _formats(preparation: Preparation, planned: PlannedScript | None) -> OutputFormats:
    """A script may say in which formats it writes."""
    formats = preparation.model.formats
    if planned is None:
        return formats
    if planned.tool is not None:
        formats = replace(formats, tool=planned.tool)
    return replace(formats, reasoning=planned.reasoning) if planned.names_reasoning else formats


def _place(constraint: Constraint, preparation: Preparation, state: PromptState) -> PlacedConstraint:
    model = preparation.model
    return place_constraint(
        constraint,
        model.formats.reasoning,
        state,
        tokens=preparation.marker_tokens(),
        single_token=model.reasoning_ends.get,
    )


def _reading(
    use: ToolUse, formats: OutputFormats, preparation: Preparation, planned: PlannedScript | None, state: PromptState
) -> OutputReading:
    """How the output is read. Where calls are not looked for in all text, they are where a grammar writes them."""
    controls = preparation.model.controls
    tools = use.offered()
    if planned is not None:
        controls = controls.extended(planned.controls)
        tools = tools if planned.reads_calls else OfferedTools()
    if formats.tool_name is None and use.enforced_place is None:
        tools = OfferedTools()
    if tools:
        formats = replace(formats, tool=formats.call_format)
    source = ReadingSource(
        tools=tools,
        controls=controls,
        mint_call_id=lambda: mint_id("call_", preparation.entropy(ID_ENTROPY_BYTES)),
        allows_many_calls=use.allows_many,
        is_open=state is PromptState.INSIDE,
        calls_finish=use.calls_finish,
    )
    return plan_reading(formats, source)
