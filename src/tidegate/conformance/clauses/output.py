"""Rules of tools, reasoning, structured output, embeddings and tokens. Name: (rule in our words, where it stands)."""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"
_GUIDE = "OpenAI guide"
_CLIENT = "openai-python 3.57.0"
_OURS = "CONTRACT.md section"

OPENAI_OUTPUT: Mapping[str, tuple[str, str]] = {
    "embeddings.closed": (
        "An embeddings request has no other members than input, model, encoding_format, dimensions and user.",
        f"{_SPEC}, CreateEmbeddingRequest (additionalProperties: false)",
    ),
    "embeddings.dimensions": (
        "`dimensions` is the number of components that every embedding has, where the model allows it; at least 1.",
        f"{_SPEC}, CreateEmbeddingRequest.dimensions",
    ),
    "embeddings.encoding": (
        "`encoding_format` is `float` (a list of numbers, the default) or `base64` (the bytes of float32 numbers,"
        " little endian). The official client asks for base64 where its caller says nothing.",
        f"{_SPEC}, CreateEmbeddingRequest.encoding_format; {_CLIENT}, resources/embeddings.py",
    ),
    "embeddings.input": (
        "`input` is a text, a list of texts, a list of token ids or a list of such lists; none is empty. Each "
        "input has one row, whose index is its place.",
        f"{_SPEC}, CreateEmbeddingRequest.input and Embedding.index",
    ),
    "embeddings.object": (
        "An answer has object `list`, data, model and usage; a row has object `embedding`, index and embedding, a"
        " list of numbers.",
        f"{_SPEC}, CreateEmbeddingResponse and Embedding",
    ),
    "embeddings.usage": (
        "`usage` has prompt_tokens and total_tokens: what the inputs cost.",
        f"{_SPEC}, CreateEmbeddingResponse.usage",
    ),
    "finish.length": (
        "`length` says that the token limit of the request was reached; other reasons say that the answer is whole.",
        f"{_SPEC}, CreateChatCompletionResponse.choices.finish_reason",
    ),
    "json.standard": (
        "A JSON text has one value, keys and texts in double quotes, no comments, no NaN.",
        "RFC 8259",
    ),
    "messages.tool_turns": (
        "An assistant's message with tool_calls needs no content; a tool's message has tool_call_id and content, "
        "as text or as text parts.",
        f"{_SPEC}, ChatCompletionRequestAssistantMessage and ChatCompletionRequestToolMessage",
    ),
    "reasoning.apart": (
        "Where a server tells reasoning apart, in `reasoning_content` or `reasoning`, the content holds nothing "
        "of it and no markers of it.",
        "convention of servers of reasoning models; the public API never shows reasoning in content",
    ),
    "reasoning.usage": (
        "`completion_tokens_details.reasoning_tokens` counts the tokens of reasoning; completion_tokens includes them.",
        f"{_SPEC}, CompletionUsage",
    ),
    "response_format.json_object": (
        "`json_object` makes the answer a JSON object, unless the token limit cut it.",
        f"{_SPEC}, ResponseFormatJsonObject; {_GUIDE} on structured outputs, JSON mode",
    ),
    "response_format.schema": (
        "`json_schema` with `strict: true` makes the answer follow the schema exactly; what of JSON Schema is not"
        " supported is an error, not a wish.",
        f"{_SPEC}, ResponseFormatJsonSchema; {_GUIDE} on structured outputs, supported schemas",
    ),
    "response_format.shape": (
        "`response_format` is an object whose type is text, json_object or json_schema; the last has json_schema "
        "with a name of letters, digits, _ and -, at most 64, and a schema that is an object.",
        f"{_SPEC}, CreateChatCompletionRequest.response_format and ResponseFormatJsonSchema",
    ),
    "response_format.streamed": (
        "A stream is held to `response_format` as a whole answer is.",
        f"{_SPEC}, CreateChatCompletionRequest.response_format (independent of stream)",
    ),
    "stream.same_answer": (
        "A stream is the same answer in parts: its deltas joined are the message.",
        f"{_SPEC}, CreateChatCompletionStreamResponse",
    ),
    "tokens.count": (
        "Where a server turns text into tokens, they are those that a completion of the text reads.",
        "convention of servers with tokenize routes (vLLM and llama-server at the root, llama-cpp-python in /extras); "
        f"{_SPEC}, CompletionUsage.prompt_tokens",
    ),
    "tokens.round_trip": (
        "Where a server turns text into tokens and back, the tokens of a text, turned back, are the text.",
        "convention of servers with tokenize routes (vLLM and llama-server at the root, llama-cpp-python in /extras)",
    ),
    "tools.apart_from_content": (
        "Calls are in tool_calls; content is the text of the message.",
        f"{_SPEC}, ChatCompletionResponseMessage",
    ),
    "tools.call_shape": (
        "A call has id, type and function with name and arguments, a string; or custom with name and input.",
        f"{_SPEC}, ChatCompletionMessageToolCall and ChatCompletionMessageCustomToolCall",
    ),
    "tools.choice_allowed": (
        "`allowed_tools` restricts the tools that may be called to a list of the offered ones.",
        f"{_SPEC}, ChatCompletionAllowedTools",
    ),
    "tools.choice_named": (
        "A function named by tool_choice must be called; it is one of the offered ones.",
        f"{_SPEC}, ChatCompletionNamedToolChoice",
    ),
    "tools.choice_none": (
        "Under `none` the model calls no tool and writes a message.",
        f"{_SPEC}, ChatCompletionToolChoiceOption",
    ),
    "tools.choice_required": (
        "Under `required` the model must call one or more tools.",
        f"{_SPEC}, ChatCompletionToolChoiceOption",
    ),
    "tools.choice_values": (
        "tool_choice is none, auto, required, or an object that names tools.",
        f"{_SPEC}, ChatCompletionToolChoiceOption",
    ),
    "tools.custom": (
        "A custom tool's input is text, within its grammar (lark or regex) where one is given.",
        f"{_SPEC}, CustomToolChatCompletions",
    ),
    "tools.finish_reason": (
        "`tool_calls` says that the model called a tool. Where a call was forced, `stop` is known too.",
        f"{_SPEC}, CreateChatCompletionResponse.choices.finish_reason; {_GUIDE} on function calling",
    ),
    "tools.fragments": (
        "Deltas of a call carry its index; id, type and name come with the first, and later ones append to arguments.",
        f"{_SPEC}, ChatCompletionMessageToolCallChunk; {_CLIENT}, lib/streaming (joins the strings of deltas)",
    ),
    "tools.legacy": (
        "`functions` and `function_call` are deprecated and still part of the contract: the message has function_call.",
        f"{_SPEC}, CreateChatCompletionRequest.functions",
    ),
    "tools.names": (
        "The name of a tool is required: letters, digits, _ and -, at most 64.",
        f"{_SPEC}, FunctionObject.name",
    ),
    "tools.offer": (
        "`tools` is a list of objects of type function, with function, or custom, with custom.",
        f"{_SPEC}, CreateChatCompletionRequest.tools",
    ),
    "tools.only_offered": (
        "The model may call the tools of the request.",
        f"{_SPEC}, CreateChatCompletionRequest.tools",
    ),
    "tools.parallel": (
        "`parallel_tool_calls: false` makes it at most one call.",
        f"{_SPEC}, ParallelToolCalls; {_GUIDE} on function calling",
    ),
    "tools.parameters": (
        "`parameters` is a JSON Schema, an object; absent, the function has none.",
        f"{_SPEC}, FunctionParameters",
    ),
    "tools.strict": (
        "With `strict: true` the arguments follow the schema of the parameters exactly.",
        f"{_SPEC}, FunctionObject.strict",
    ),
}

TIDEGATE_OUTPUT: Mapping[str, tuple[str, str]] = {
    "errors.param": (
        "`param` is the path of the first offending field; code and status are those of the table.",
        f"{_OURS} 3",
    ),
    "finish.grammar": ("An answer whose grammar is complete ends with `stop`.", f"{_OURS} 5"),
    "finish.tool_calls": (
        "Complete calls end with `tool_calls`; with `stop` where one function was forced by name.",
        f"{_OURS} 5",
    ),
    "messages.tool_result": ("A tool message without tool_call_id is 400.", f"{_OURS} 4"),
    "reasoning.ends": (
        "The first closing marker ends reasoning; unclosed reasoning is all reasoning; line breaks right after "
        "the marker are dropped.",
        f"{_OURS} 8",
    ),
    "reasoning.field": ("Reasoning goes to `reasoning_content`, in message and delta.", f"{_OURS} 8"),
    "reasoning.no_calls": ("Tool markup inside open reasoning is not a call.", f"{_OURS} 8"),
    "stream.equals_whole": (
        "Deltas joined equal the message of a whole answer exactly, arguments of tools included.",
        f"{_OURS} 5",
    ),
    "structured.enforced": (
        "`json_schema` is enforced, strict or not; what is not enforced is refused: never weaker.",
        f"{_OURS} 9",
    ),
    "structured.extension": (
        "`structured_outputs` has exactly one of json, regex, choice, grammar and structural_tag, and is enforced.",
        f"{_OURS} 9",
    ),
    "structured.invalid": (
        "A schema that is none is `invalid_schema`, a keyword that is not enforced `unsupported_schema` at its "
        "path, one that is too large or deep `grammar_too_complex` with the limit.",
        f"{_OURS} 9",
    ),
    "structured.old_names": (
        "`guided_json` and its kin are 400, with a message that names structured_outputs.",
        f"{_OURS} 4",
    ),
    "tokens.chat": ("The tokens of a chat are those that the chat reads: count equals usage.", f"{_OURS} 13 and 14"),
    "tokens.ids": ("Every token id is checked against the vocabulary.", f"{_OURS} 4"),
    "tokens.input": ("Exactly one of prompt, text and messages is given.", "docs/openapi.json, TokenizeRequest"),
    "tokens.plain": ("Text that spells a control token is encoded as plain text.", f"{_OURS} 4"),
    "tokens.prompt": ("The tokens of a prompt are those that the completion reads: count equals usage.", f"{_OURS} 13"),
    "tokens.round_trip": (
        "Tokens of a text, turned back, are the text.",
        f"{_OURS} 1 and 14: the served tokenizer itself",
    ),
    "tools.empty": ("An empty list of tools is the same as none.", f"{_OURS} 8"),
    "tools.enforced": (
        "Forced calls and strict ones are enforced by grammar; one call where parallel_tool_calls is false.",
        f"{_OURS} 8",
    ),
    "tools.fragments": (
        "The first delta of a call has index, id, type, name and empty arguments; later ones only index and arguments.",
        f"{_OURS} 8",
    ),
    "tools.ids": ("Ids of calls are unique: `call_` and 24 random characters.", f"{_OURS} 8"),
    "tools.named_once": ("A function that is forced by name is called once.", "docs/tool_calls.md, Use"),
    "tools.offer": (
        "Names come once and are `[A-Za-z0-9_-]{1,64}`; parameters describe an object; a choice names an offered tool.",
        f"{_OURS} 8 and docs/tool_calls.md",
    ),
}
