"""A completion call to a `PreparedCall`: check every field, tokenize each prompt, fix the lengths."""

from dataclasses import replace

from tidegate.contract.codec import decode_completion
from tidegate.contract.completion import CompletionRequest
from tidegate.serving.call import Call
from tidegate.serving.header_rules import read_wishes
from tidegate.serving.prepare import Preparation, PromptSource, prepare_prompt
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.prompt_rules import Prompt, prompts_of
from tidegate.serving.request_rules import check_completion
from tidegate.serving.sampling_rules import logprob_counts
from tidegate.serving.script_rules import PlannedScript, plan_script


def prepare_completion(call: Call, preparation: Preparation) -> PreparedCall:
    """Raises InvalidRequest, UnsupportedParameter, ModelNotFound or ModelNotAllowed; nothing has been started then."""
    wishes = read_wishes(call.headers)
    request, ignored = preparation.decode(call, decode_completion, CompletionRequest)
    model = preparation.check_model(request.model, call.principal)
    check_completion(request, preparation.policy)
    preparation.check_generates()
    constraint = preparation.constraint(request)
    tokenizer = preparation.model.tokenizer
    planned = plan_script(request.x_script, is_scripted=preparation.model.is_scripted, base=tokenizer.vocabulary)
    sampling = preparation.sampling(request)
    context = preparation.context(call, "cmpl-", wishes, request)
    prompts = []
    for i, prompt in enumerate(prompts_of(request, vocab_size=preparation.info.vocab_size)):
        source = _source(request, prompt, preparation, planned)
        request_id = context.request_id if i == 0 else f"{context.request_id}-{i}"
        key_id, priority = context.principal.key_id, context.priority
        source = replace(source, request_id=request_id, priority=priority, constraint=constraint, key_id=key_id)
        source = replace(source, hop=context.hop)
        prompts.append(prepare_prompt(request, source, preparation, sampling, planned))
    counts = logprob_counts(request)
    options = request.stream_options
    return PreparedCall(
        context=context,
        model=model,
        fingerprint=preparation.fingerprint(),
        prompts=prompts,
        num_choices=request.n or 1,
        is_stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.continuous_usage_stats),
        num_top=counts.num_output,
        want_token_ids=bool(request.return_token_ids),
        given_seed=request.seed,
        want_prompt_logprobs=counts.returns_prompt,
        ignored_fields=ignored,
        block_tokens=preparation.info.block_tokens,
        constraint=constraint,
    )


def _source(
    request: CompletionRequest,
    prompt: Prompt,
    preparation: Preparation,
    planned: PlannedScript | None,
) -> PromptSource:
    """Text is encoded with what the tokenizer adds by default; token ids are taken as they are."""
    tokenizer = preparation.model.tokenizer
    vocabulary = planned.vocabulary if planned is not None else tokenizer.vocabulary
    if isinstance(prompt, str):
        preparation.check_length(len(prompt), "prompt")
        token_ids = tokenizer.encode(prompt, add_special=True, parse_special=False)
        text = prompt
    else:
        token_ids = prompt
        text = tokenizer.decode(token_ids, skip_special=False) if request.echo or request.logprobs is not None else ""
    if planned is not None and planned.prompt_token_ids is not None:
        token_ids = list(planned.prompt_token_ids)
        text = b"".join(vocabulary.token_bytes(token_id) for token_id in token_ids).decode("utf-8", "replace")
    return PromptSource(token_ids, vocabulary, text_start=len(text), echo_text=text if request.echo else None)
