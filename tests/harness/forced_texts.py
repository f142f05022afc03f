"""Two calls in each family's format, written by hand: `tide_at` with port and day, then `ping` without arguments."""

PORT = "Saint-Malo é 😀 </b>"
DAY = 31

_JSON = f'{{"port": "{PORT}", "day": {DAY}}}'

TWO_CALLS = {
    "hermes": (
        f'<tool_call>\n{{"name": "tide_at", "arguments": {_JSON}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    ),
    "llama3_json": f'{{"name": "tide_at", "parameters": {_JSON}}}; {{"name": "ping", "parameters": {{}}}}',
    "granite": f'<|tool_call|>[{{"name": "tide_at", "arguments": {_JSON}}}, {{"name": "ping", "arguments": {{}}}}]',
    "phi4_mini": f'functools[{{"name": "tide_at", "arguments": {_JSON}}}, {{"name": "ping", "arguments": {{}}}}]',
    "jamba": (
        f'<tool_calls>[\n    {{"name": "tide_at", "arguments": {_JSON}}},\n'
        '    {"name": "ping", "arguments": {}}\n]</tool_calls>'
    ),
    "nemotron": (
        f'<TOOLCALL>[{{"name": "tide_at", "arguments": {_JSON}}}, {{"name": "ping", "arguments": {{}}}}]</TOOLCALL>'
    ),
    "internlm2": (
        f'<|action_start|><|plugin|>\n{{"name": "tide_at", "parameters": {_JSON}}}<|action_end|>'
        '<|action_start|><|plugin|>\n{"name": "ping", "parameters": {}}<|action_end|>'
    ),
    "command_a": (
        f'<|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "tide_at", "parameters": {_JSON}}},\n'
        '    {"tool_call_id": "1", "tool_name": "ping", "parameters": {}}\n]<|END_ACTION|>'
    ),
    "json": f'[{{"name": "tide_at", "arguments": {_JSON}}}, {{"name": "ping", "arguments": {{}}}}]',
    "mistral": f"[TOOL_CALLS]tide_at[ARGS]{_JSON}[TOOL_CALLS]ping[ARGS]{{}}",
    "deepseek_v3": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tide_at\n```json\n{_JSON}\n```"
        "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>"
    ),
    "deepseek_v31": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tide_at<｜tool▁sep｜>{_JSON}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.tide_at:0<|tool_call_argument_begin|>"
        f"{_JSON}<|tool_call_end|><|tool_call_begin|>functions.ping:1<|tool_call_argument_begin|>"
        "{}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "qwen3_coder": (
        f"<tool_call>\n<function=tide_at>\n<parameter=port>\n{PORT}\n</parameter>\n<parameter=day>\n{DAY}\n"
        "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>"
    ),
    "seed_oss": (
        f"<seed:tool_call>\n<function=tide_at>\n<parameter=port>{PORT}</parameter>\n<parameter=day>{DAY}</parameter>\n"
        "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=ping>\n</function>\n</seed:tool_call>"
    ),
    "glm45": (
        f"<tool_call>tide_at\n<arg_key>port</arg_key>\n<arg_value>{PORT}</arg_value>\n<arg_key>day</arg_key>\n"
        f"<arg_value>{DAY}</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call>"
    ),
    "minimax_m2": (
        f'<minimax:tool_call>\n<invoke name="tide_at">\n<parameter name="port">{PORT}</parameter>\n'
        f'<parameter name="day">{DAY}</parameter>\n</invoke>\n<invoke name="ping">\n</invoke>\n</minimax:tool_call>'
    ),
    "deepseek_v32": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="tide_at">\n'
        f'<｜DSML｜parameter name="port" string="true">{PORT}</｜DSML｜parameter>\n'
        f'<｜DSML｜parameter name="day" string="false">{DAY}</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        '<｜DSML｜invoke name="ping">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>'
    ),
    "step3": (
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="tide_at">'
        f'<steptml:parameter name="port">{PORT}</steptml:parameter><steptml:parameter name="day">{DAY}'
        "</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="ping"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>'
    ),
    "pythonic": f'[tide_at(port="{PORT}", day={DAY}), ping()]',
    "llama4_pythonic": f'<|python_start|>[tide_at(port="{PORT}", day={DAY}), ping()]<|python_end|>',
    "lfm2": f'<|tool_call_start|>[tide_at(port="{PORT}", day={DAY}), ping()]<|tool_call_end|>',
    "olmo3": f'<function_calls>\ntide_at(port="{PORT}", day={DAY})\nping()\n</function_calls>',
    "functiongemma": (
        f"<start_function_call>call:tide_at{{port:<escape>{PORT}<escape>,day:{DAY}}}<end_function_call>"
        "<start_function_call>call:ping{}<end_function_call>"
    ),
    "gemma4": (
        f'<|tool_call>call:tide_at{{port:<|"|>{PORT}<|"|>,day:{DAY}}}<tool_call|><|tool_call>call:ping{{}}<tool_call|>'
    ),
    "harmony": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.tide_at "
        f"<|constrain|>json<|message|>{_JSON}<|call|><|start|>assistant<|channel|>commentary to=functions.ping "
        "<|constrain|>json<|message|>{}<|call|>"
    ),
}
TWO_CALLS["apriel"] = TWO_CALLS["jamba"].replace("[\n    ", "[").replace(",\n    ", ", ").replace("\n]", "]")
