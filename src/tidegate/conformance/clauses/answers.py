"""Rules of what an answer says and how it is streamed, of both contracts. Name: (the rule in our words, its source)."""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"
_CLIENT = "openai-python 3.57.0"
_OURS = "CONTRACT.md section"

OPENAI_ANSWERS: Mapping[str, tuple[str, str]] = {
    "chat.content_parts": (
        "The content of a message is a text, or a list of parts, of which each has a type and its text.",
        f"{_SPEC}, ChatCompletionRequestUserMessage",
    ),
    "chat.created": (
        "`created` is the time at which the answer was made, in seconds since 1970.",
        f"{_SPEC}, CreateChatCompletionResponse.created",
    ),
    "chat.finish_length": (
        "finish_reason is `length` where the token limit ended the answer, `stop` at a natural end or a stop string.",
        f"{_SPEC}, CreateChatCompletionResponse.choices.finish_reason",
    ),
    "chat.id": ("`id` is unique to the answer.", f"{_SPEC}, CreateChatCompletionResponse.id"),
    "chat.max_completion_tokens": (
        "`max_completion_tokens` is an upper bound of the tokens that are generated, reasoning included.",
        f"{_SPEC}, CreateChatCompletionRequest.max_completion_tokens",
    ),
    "chat.max_tokens": (
        "`max_tokens` is the largest number of tokens that may be generated.",
        f"{_SPEC}, CreateChatCompletionRequest.max_tokens",
    ),
    "chat.media_type": ("A whole answer is application/json.", f"{_SPEC}, createChatCompletion, response 200"),
    "chat.messages": (
        "`messages` is the conversation so far: messages of the roles developer, system, user, assistant and tool.",
        f"{_SPEC}, CreateChatCompletionRequest.messages",
    ),
    "chat.object": (
        "A chat completion has id, object `chat.completion`, created, model and choices; a choice has index, message, "
        "finish_reason and logprobs; a message has role `assistant`, content and refusal.",
        f"{_SPEC}, CreateChatCompletionResponse",
    ),
    "choices.n": (
        "`n` choices are generated, numbered from 0; one where `n` is absent.",
        f"{_SPEC}, CreateChatCompletionRequest.n",
    ),
    "completions.echo": (
        "With `echo` the prompt comes back before the completion.",
        f"{_SPEC}, CreateCompletionRequest.echo",
    ),
    "completions.max_tokens": (
        "`max_tokens` is the largest number of tokens that may be generated in a completion.",
        f"{_SPEC}, CreateCompletionRequest.max_tokens",
    ),
    "completions.object": (
        "A completion has id, object `text_completion`, created, model and choices; a choice has text, index, logprobs "
        "and finish_reason.",
        f"{_SPEC}, CreateCompletionResponse",
    ),
    "completions.prompts": (
        "A prompt is a text, a list of texts, a list of token ids, or a list of such lists; several prompts have their "
        "choices numbered prompt after prompt.",
        f"{_SPEC}, CreateCompletionRequest.prompt",
    ),
    "completions.suffix": (
        "`suffix` is the text that comes after the one to be inserted.",
        f"{_SPEC}, CreateCompletionRequest.suffix",
    ),
    "http.fragmentation": (
        "A message is the same however its bytes are divided over reads and writes.",
        "RFC 9112, section 2.2; HTML standard, section 9.2.6",
    ),
    "logprobs.bytes": (
        "`bytes` are the UTF-8 bytes of the token, so that characters over several tokens can be put together.",
        f"{_SPEC}, ChatCompletionTokenLogprob.bytes",
    ),
    "logprobs.completions": (
        "logprobs of a completion are parallel lists: tokens, token_logprobs, top_logprobs (maps), text_offset.",
        f"{_SPEC}, CreateCompletionResponse.choices.logprobs",
    ),
    "logprobs.content": (
        "`logprobs: true` returns an entry with token, logprob, bytes and top_logprobs for each token of the content; "
        "otherwise there are none.",
        f"{_SPEC}, CreateChatCompletionRequest.logprobs",
    ),
    "logprobs.stream": (
        "A chunk's logprobs are of the tokens of its delta.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.choices.logprobs",
    ),
    "logprobs.top": (
        "`top_logprobs` is how many of the most likely tokens are returned at each place, each with its logprob.",
        f"{_SPEC}, CreateChatCompletionRequest.top_logprobs",
    ),
    "logprobs.values": (
        "A logprob is the logarithm of a probability; -9999.0 stands for very unlikely.",
        f"{_SPEC}, ChatCompletionTokenLogprob.logprob",
    ),
    "seed.effect": (
        "With `seed` the server does its best to sample the same answer again.",
        f"{_SPEC}, CreateChatCompletionRequest.seed",
    ),
    "stop.excluded": (
        "Generation ends at a stop sequence, and the returned text is what came before it.",
        f"{_SPEC}, StopConfiguration",
    ),
    "stop.finish": (
        "finish_reason is `stop` where a stop sequence ended the answer.",
        f"{_SPEC}, CreateChatCompletionResponse.choices.finish_reason",
    ),
    "stop.forms": ("`stop` is a text, or a list of 1 to 4 texts.", f"{_SPEC}, StopConfiguration"),
    "stream.as_whole": (
        "A stream holds the deltas of the message that a whole answer holds.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.choices.delta",
    ),
    "stream.chunk": (
        "A chunk has id, object `chat.completion.chunk`, created, model and choices; a choice has index and delta.",
        f"{_SPEC}, CreateChatCompletionStreamResponse",
    ),
    "stream.completions": (
        "Streamed or not, completions have one shape.",
        f"{_SPEC}, CreateCompletionResponse",
    ),
    "stream.done": (
        "A stream ends with the event `data: [DONE]`.",
        f"{_SPEC}, CreateChatCompletionRequest.stream; {_CLIENT}, Stream",
    ),
    "stream.finish_member": (
        "Each choice of a chunk has finish_reason, null until the last: stop, length, tool_calls, content_filter or "
        "function_call.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.choices.finish_reason",
    ),
    "stream.finish_once": (
        "A choice ends with the one chunk that has its finish_reason.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.choices.finish_reason",
    ),
    "stream.frames": (
        "A stream is of data-only server-sent events, in UTF-8, of which each holds one JSON object, and ends with a "
        "blank line.",
        f"{_SPEC}, CreateChatCompletionRequest.stream; HTML standard, section 9.2",
    ),
    "stream.identity": (
        "All chunks of a stream have the same id, created and model.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.id, .created, .model",
    ),
    "stream.media_type": ("A stream is text/event-stream.", f"{_SPEC}, createChatCompletion, response 200"),
    "stream.no_usage": (
        "usage is in a stream only where `stream_options.include_usage` asks for it.",
        f"{_SPEC}, CreateChatCompletionStreamResponse.usage",
    ),
    "stream.over_time": (
        "With `stream: true` the answer is sent as it is generated.",
        f"{_SPEC}, CreateChatCompletionRequest.stream",
    ),
    "stream.role": (
        "The first delta of a choice has the role of the message's author.",
        f"{_SPEC}, createChatCompletion, example of a stream; ChatCompletionStreamResponseDelta.role",
    ),
    "stream.usage_chunk": (
        "With include_usage a last chunk before [DONE] has an empty choices list and the usage of the whole request.",
        f"{_SPEC}, ChatCompletionStreamOptions.include_usage",
    ),
    "stream.usage_null": (
        "With include_usage all other chunks have usage too, and it is null.",
        f"{_SPEC}, ChatCompletionStreamOptions.include_usage",
    ),
    "text.unicode": (
        "Text is exchanged as JSON in UTF-8: what was said comes back character for character.",
        "RFC 8259, sections 7 and 8.1",
    ),
    "usage.choices": (
        "completion_tokens counts the tokens of all choices, prompt_tokens the prompt.",
        f"{_SPEC}, CompletionUsage",
    ),
    "usage.members": (
        "usage has prompt_tokens, completion_tokens, and total_tokens, which is both together.",
        f"{_SPEC}, CompletionUsage",
    ),
}

TIDEGATE_ANSWERS: Mapping[str, tuple[str, str]] = {
    "chat.model": ("`model` is the served name that was asked for.", f"{_OURS} 14"),
    "chat.parts": ("Text parts are joined with a line break where the template takes only text.", f"{_OURS} 4"),
    "headers.revision": (
        "`Tidegate-Served-Revision` is also `system_fingerprint`, in bodies and on every chunk.",
        f"{_OURS} 2",
    ),
    "logprobs.bytes": (
        "`bytes` concatenate to the content's bytes; a token that is part of a character has its own.",
        f"{_OURS} 7",
    ),
    "logprobs.offset": (
        "text_offset counts characters from the start of prompt and completion together.",
        f"{_OURS} 7",
    ),
    "logprobs.raw": (
        "Log-probabilities are the model's own, before temperature, bias, penalties and grammar.",
        f"{_OURS} 7",
    ),
    "logprobs.top": (
        "Exactly `top_logprobs` alternatives are returned; 0 gives empty lists.",
        f"{_OURS} 7",
    ),
    "parameters.max_completion_tokens": ("`max_completion_tokens` wins over `max_tokens`.", f"{_OURS} 4"),
    "parameters.token_prompts": ("Prompts given as token ids are taken as they are.", f"{_OURS} 4"),
    "parameters.zero_tokens": ("`max_tokens: 0` is served on completions with `echo`.", f"{_OURS} 4"),
    "seed.repeats": (
        "`seed` makes sampling repeatable for the same served revision; beside other requests as well as can be.",
        f"{_OURS} 4",
    ),
    "stop.first": (
        "The stop string that completes first wins, independent of how tokens were grouped.",
        f"{_OURS} 6",
    ),
    "stop.held_back": (
        "Held-back text is at most the longest proper prefix of a stop, and is released at the end.",
        f"{_OURS} 6",
    ),
    "stop.include": (
        "With `include_stop_str_in_output` the text ends with the stop string.",
        f"{_OURS} 6",
    ),
    "stop.reason": ("`stop_reason` is the stop string that ended the answer.", f"{_OURS} 5"),
    "stop.usage": (
        "completion_tokens counts every token up to and including the one that completed the stop.",
        f"{_OURS} 6",
    ),
    "stream.error": (
        "What fails after the stream began is one event with an error object; no finish_reason and no [DONE] follow.",
        f"{_OURS} 5",
    ),
    "stream.frames": (
        "A frame is `data: `, one line of JSON, two line feeds; line separators of Unicode are escaped; heartbeats are "
        "comment lines ended by one line feed.",
        f"{_OURS} 5",
    ),
    "stream.headers": (
        "Streams have Cache-Control no-cache and X-Accel-Buffering no, and neither a length nor a coding.",
        f"{_OURS} 2",
    ),
    "stream.heartbeat": (
        "While a stream has nothing to send, a comment line `: ping`, ended by one line feed, goes out every 15 s, and "
        "none before the status is known.",
        f"{_OURS} 5",
    ),
    "stream.order": (
        "Opening chunks in index order, deltas, one chunk with an empty delta and finish_reason for each choice, usage "
        "where asked for, [DONE], nothing. No chunk is without information.",
        f"{_OURS} 5",
    ),
    "text.cut_character": (
        "A character that is cut off at the very end becomes one U+FFFD, streamed and whole.",
        f"{_OURS} 5",
    ),
    "usage.cached": ("`prompt_tokens_details.cached_tokens` is always told.", f"{_OURS} 13"),
    "usage.continuous": (
        "With `continuous_usage_stats` every chunk tells the usage so far.",
        f"{_OURS} 4",
    ),
}
