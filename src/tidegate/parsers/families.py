"""The model families, by name: the only place that lists them."""

from tidegate.parsers.tool_format import (
    BraceCalls,
    ChannelCalls,
    JsonCalls,
    NamedJsonCalls,
    PythonCalls,
    ReasoningMarkers,
    TagCalls,
    ToolFormat,
)

THINK = ReasoningMarkers(("<think>",), ("</think>",))
THINK_IN_PROMPT = ReasoningMarkers(("<think>",), ("</think>",), is_open=True)
_PHRASES = ReasoningMarkers(
    ("Here is my thought process:", "Here's my thought process:", "<think>"),
    ("Here is my response:", "Here's my response:", "</think>"),
)
_APRIEL = ReasoningMarkers(
    ("Here are my reasoning steps:\n", "Here are my reasoning steps:"), ("[BEGIN FINAL RESPONSE]",), is_open=True
)
_CHANNEL_THOUGHT = ReasoningMarkers(("<|channel>thought\n", "<|channel>thought"), ("<channel|>",))

_DEEPSEEK_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_DEEPSEEK_OPENS = ("<｜tool▁call▁begin｜>",)
_DEEPSEEK_CLOSES = ("<｜tool▁call▁end｜>",)
_LINED_PARAMETERS = TagCalls(
    name_open="<function=",
    name_end=">",
    param_open="<parameter=",
    key_end=">",
    value_lead="\n",
    value_ends=("\n</parameter>", "</parameter>", "\n<parameter=", "\n</function>"),
    call_end="</function>",
)

_JSON = (
    ToolFormat(
        name="hermes",
        models="Qwen 2.5, Qwen 3, QwQ, Hermes 2 and 3, Granite 4, SmolLM3, MiMo, Bielik",
        style=JsonCalls(),
        opens=("<tool_call>",),
        closes=("</tool_call>",),
        reasoning=THINK,
        example='<tool_call>\n{"name": "tide_at", "arguments": {"port": "Brest"}}\n</tool_call>',
    ),
    ToolFormat(
        name="llama3_json",
        models="Llama 3.1, 3.2, 3.3",
        style=JsonCalls(separator=";", needs_arguments=True),
        opens=("<|python_tag|>",),
        bare_starts="{",
        example='{"name": "tide_at", "parameters": {"port": "Brest"}}',
    ),
    ToolFormat(
        name="granite",
        models="Granite 3",
        style=JsonCalls(),
        opens=("<|tool_call|>", "<tool_call>"),
        closes=("</tool_call>",),
        dropped=("<response>", "</response>"),
        reasoning=_PHRASES,
        example='<|tool_call|>[{"name": "tide_at", "arguments": {"port": "Brest"}}]',
    ),
    ToolFormat(
        name="phi4_mini",
        models="Phi-4-mini",
        style=JsonCalls(),
        opens=("functools[",),
        example='functools[{"name": "tide_at", "arguments": {"port": "Brest"}}]',
    ),
    ToolFormat(
        name="jamba",
        models="Jamba 1.5 and later, Hunyuan A13B, MiniMax M1",
        style=JsonCalls(),
        opens=("<tool_calls>",),
        closes=("</tool_calls>",),
        reasoning=THINK,
        example='<tool_calls>[\n    {"name": "tide_at", "arguments": {"port": "Brest"}}\n]</tool_calls>',
    ),
    ToolFormat(
        name="apriel",
        models="Apriel 1.5 and 1.6",
        style=JsonCalls(),
        opens=("<tool_calls>",),
        closes=("</tool_calls>",),
        dropped=("[END FINAL RESPONSE]",),
        reasoning=_APRIEL,
        example='<tool_calls>[{"name": "tide_at", "arguments": {"port": "Brest"}}]</tool_calls>',
    ),
    ToolFormat(
        name="nemotron",
        models="Nemotron Nano 2 and other Nemotron models before 3",
        style=JsonCalls(),
        opens=("<TOOLCALL>",),
        closes=("</TOOLCALL>",),
        reasoning=THINK,
        example='<TOOLCALL>[{"name": "tide_at", "arguments": {"port": "Brest"}}]</TOOLCALL>',
    ),
    ToolFormat(
        name="internlm2",
        models="InternLM 2 and 2.5",
        style=JsonCalls(),
        opens=("<|action_start|><|plugin|>",),
        closes=("<|action_end|>",),
        example='<|action_start|><|plugin|>\n{"name": "tide_at", "parameters": {"port": "Brest"}}<|action_end|>',
    ),
    ToolFormat(
        name="command_a",
        models="Command A, Command R 7B",
        style=JsonCalls(name_keys=("tool_name",), arguments_keys=("parameters",)),
        opens=("<|START_ACTION|>",),
        closes=("<|END_ACTION|>",),
        dropped=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        reasoning=ReasoningMarkers(("<|START_THINKING|>",), ("<|END_THINKING|>",)),
        example=(
            '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "tide_at", '
            '"parameters": {"port": "Brest"}}\n]<|END_ACTION|>'
        ),
    ),
    ToolFormat(
        name="json",
        models="models without a format of their own: the output is one JSON object, or a list of them",
        style=JsonCalls(needs_arguments=True),
        bare_starts="{[",
        example='{"name": "tide_at", "arguments": {"port": "Brest"}}',
    ),
)

_NAMED_JSON = (
    ToolFormat(
        name="mistral",
        models="Mistral 7B v0.3 and later, Nemo, Small, Large, Ministral, Devstral, Magistral",
        style=NamedJsonCalls(name_ends=("[ARGS]", "{"), id_mark="[CALL_ID]", list_form=JsonCalls()),
        opens=("[TOOL_CALLS]",),
        reasoning=ReasoningMarkers(("[THINK]",), ("[/THINK]",)),
        example='[TOOL_CALLS]tide_at[ARGS]{"port": "Brest"}',
    ),
    ToolFormat(
        name="deepseek_v3",
        models="DeepSeek V3, R1 and its distillations",
        style=NamedJsonCalls(lead="function<｜tool▁sep｜>", name_ends=("\n```json\n",), tail="```"),
        opens=_DEEPSEEK_OPENS,
        closes=_DEEPSEEK_CLOSES,
        section=_DEEPSEEK_SECTION,
        reasoning=THINK_IN_PROMPT,
        example=(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tide_at\n```json\n"
            '{"port": "Brest"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
        ),
    ),
    ToolFormat(
        name="deepseek_v31",
        models="DeepSeek V3.1",
        style=NamedJsonCalls(name_ends=("<｜tool▁sep｜>",)),
        opens=_DEEPSEEK_OPENS,
        closes=_DEEPSEEK_CLOSES,
        section=_DEEPSEEK_SECTION,
        reasoning=THINK_IN_PROMPT,
        example=(
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tide_at<｜tool▁sep｜>{"port": "Brest"}'
            "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
    ),
    ToolFormat(
        name="kimi_k2",
        models="Kimi K2, K2 Thinking",
        style=NamedJsonCalls(
            name_ends=("<|tool_call_argument_begin|>",),
            name_prefix="functions.",
            has_index=True,
        ),
        opens=("<|tool_call_begin|>",),
        closes=("<|tool_call_end|>",),
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        reasoning=THINK,
        example=(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.tide_at:0<|tool_call_argument_begin|>"
            '{"port": "Brest"}<|tool_call_end|><|tool_calls_section_end|>'
        ),
    ),
)

_TAGS = (
    ToolFormat(
        name="qwen3_coder",
        models="Qwen3-Coder, Qwen3.5, Step 3.5, Nemotron 3",
        style=_LINED_PARAMETERS,
        opens=("<tool_call>",),
        closes=("</tool_call>",),
        reasoning=THINK,
        example=("<tool_call>\n<function=tide_at>\n<parameter=port>\nBrest\n</parameter>\n</function>\n</tool_call>"),
    ),
    ToolFormat(
        name="seed_oss",
        models="Seed-OSS",
        style=_LINED_PARAMETERS,
        opens=("<seed:tool_call>",),
        closes=("</seed:tool_call>",),
        reasoning=ReasoningMarkers(("<seed:think>",), ("</seed:think>",)),
        example=(
            "<seed:tool_call>\n<function=tide_at>\n<parameter=port>Brest</parameter>\n</function>\n</seed:tool_call>"
        ),
    ),
    ToolFormat(
        name="glm45",
        models="GLM 4.5, 4.6, 4.7, 5, Ling 3",
        style=TagCalls(
            param_open="<arg_key>", key_end="</arg_key>", value_open="<arg_value>", value_ends=("</arg_value>",)
        ),
        opens=("<tool_call>",),
        closes=("</tool_call>",),
        reasoning=THINK,
        example=("<tool_call>tide_at\n<arg_key>port</arg_key>\n<arg_value>Brest</arg_value>\n</tool_call>"),
    ),
    ToolFormat(
        name="minimax_m2",
        models="MiniMax M2",
        style=TagCalls(param_open='<parameter name="', key_end='">', value_ends=("</parameter>",), name_end='">'),
        opens=('<invoke name="',),
        closes=("</invoke>",),
        section=("<minimax:tool_call>", "</minimax:tool_call>"),
        reasoning=THINK_IN_PROMPT,
        example=(
            '<minimax:tool_call>\n<invoke name="tide_at">\n<parameter name="port">Brest</parameter>\n</invoke>\n'
            "</minimax:tool_call>"
        ),
    ),
    ToolFormat(
        name="deepseek_v32",
        models="DeepSeek V3.2",
        style=TagCalls(
            param_open='<｜DSML｜parameter name="',
            key_end='" string="',
            type_end='">',
            value_ends=("</｜DSML｜parameter>",),
            name_end='">',
        ),
        opens=('<｜DSML｜invoke name="',),
        closes=("</｜DSML｜invoke>",),
        section=("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
        reasoning=THINK_IN_PROMPT,
        example=(
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="tide_at">\n'
            '<｜DSML｜parameter name="port" string="true">Brest</｜DSML｜parameter>\n'
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
        ),
    ),
    ToolFormat(
        name="step3",
        models="Step 3",
        style=TagCalls(
            lead="function<｜tool_sep｜>",
            name_open='<steptml:invoke name="',
            name_end='">',
            param_open='<steptml:parameter name="',
            key_end='">',
            value_ends=("</steptml:parameter>",),
            call_end="</steptml:invoke>",
        ),
        opens=("<｜tool_call_begin｜>",),
        closes=("<｜tool_call_end｜>",),
        section=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
        reasoning=THINK_IN_PROMPT,
        example=(
            "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
            '<steptml:invoke name="tide_at"><steptml:parameter name="port">Brest</steptml:parameter></steptml:invoke>'
            "<｜tool_call_end｜><｜tool_calls_end｜>"
        ),
    ),
)

_LITERALS = (
    ToolFormat(
        name="pythonic",
        models="Llama 3.2 1B and 3B, Hammer, ToolACE",
        style=PythonCalls(),
        bare_starts="[",
        example='[tide_at(port="Brest")]',
    ),
    ToolFormat(
        name="llama4_pythonic",
        models="Llama 4",
        style=PythonCalls(),
        opens=("<|python_start|>",),
        closes=("<|python_end|>",),
        bare_starts="[",
        example='<|python_start|>[tide_at(port="Brest")]<|python_end|>',
    ),
    ToolFormat(
        name="lfm2",
        models="LFM2, LFM2.5",
        style=PythonCalls(),
        opens=("<|tool_call_start|>",),
        closes=("<|tool_call_end|>",),
        reasoning=THINK,
        example='<|tool_call_start|>[tide_at(port="Brest")]<|tool_call_end|>',
    ),
    ToolFormat(
        name="olmo3",
        models="OLMo 3",
        style=PythonCalls(in_brackets=False),
        opens=("<function_calls>",),
        closes=("</function_calls>",),
        reasoning=THINK_IN_PROMPT,
        example='<function_calls>\ntide_at(port="Brest")\n</function_calls>',
    ),
    ToolFormat(
        name="functiongemma",
        models="FunctionGemma",
        style=BraceCalls(lead="call:", quote="<escape>"),
        opens=("<start_function_call>",),
        closes=("<end_function_call>",),
        example="<start_function_call>call:tide_at{port:<escape>Brest<escape>}<end_function_call>",
    ),
    ToolFormat(
        name="gemma4",
        models="Gemma 4",
        style=BraceCalls(lead="call:", quote='<|"|>'),
        opens=("<|tool_call>",),
        closes=("<tool_call|>",),
        reasoning=_CHANNEL_THOUGHT,
        example='<|tool_call>call:tide_at{port:<|"|>Brest<|"|>}<tool_call|>',
    ),
)

_CHANNELS = (
    ToolFormat(
        name="harmony",
        models="gpt-oss",
        style=ChannelCalls(
            start="<|start|>",
            channel="<|channel|>",
            message="<|message|>",
            ends=("<|end|>", "<|call|>", "<|return|>"),
            recipient="to=functions.",
            reasoning_channel="analysis",
        ),
        example='<|channel|>commentary to=functions.tide_at <|constrain|>json<|message|>{"port": "Brest"}<|call|>',
    ),
)

FAMILIES = {form.name: form for form in (*_JSON, *_NAMED_JSON, *_TAGS, *_LITERALS, *_CHANNELS)}
