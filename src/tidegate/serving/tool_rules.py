"""Rules on the tools that a request offers and on its choice among them, deprecated forms included.

Whether a schema or a grammar can be enforced is not known here: the grammar's compilation says so, where one is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.contract.bounds import over_limit
from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import encode_json
from tidegate.contract.quote import quote
from tidegate.contract.tools import (
    AllowedToolsChoice,
    CustomTool,
    FunctionChoice,
    FunctionDefinition,
    Tool,
    ToolChoice,
    ToolName,
)
from tidegate.errors import InvalidValue
from tidegate.serving.request_policy import RequestPolicy


def check_tools(tools: Sequence[Tool], policy: RequestPolicy) -> None:
    """Raises InvalidValue for too many tools, too many bytes of them, two of one name, and for a broken schema."""
    _check_size("tools", tools, policy)
    definitions = [tool.custom if isinstance(tool, CustomTool) else tool.function for tool in tools]
    kinds = ["custom" if isinstance(tool, CustomTool) else "function" for tool in tools]
    _check_names([(f"tools[{i}].{kinds[i]}.name", one.name) for i, one in enumerate(definitions)])
    for i, one in enumerate(definitions):
        if isinstance(one, FunctionDefinition):
            check_parameters(one.parameters, f"tools[{i}].function.parameters")


def check_functions(functions: Sequence[FunctionDefinition], policy: RequestPolicy) -> None:
    """As `check_tools`, for the deprecated `functions`."""
    _check_size("functions", functions, policy)
    _check_names([(f"functions[{i}].name", one.name) for i, one in enumerate(functions)])
    for i, one in enumerate(functions):
        check_parameters(one.parameters, f"functions[{i}].parameters")


def _check_size(field: str, tools: Sequence[object], policy: RequestPolicy) -> None:
    limits = policy.limits
    if len(tools) > limits.tools:
        raise over_limit(field, "tools", value=limits.tools, actual=len(tools))
    num_bytes = len(encode_json(tools))
    if num_bytes > limits.tool_bytes:
        raise over_limit(field, "tool_bytes", value=limits.tool_bytes, actual=num_bytes)


def _check_names(names: Sequence[tuple[str, str]]) -> None:
    seen = set()
    for param, name in names:
        if name in seen:
            raise InvalidValue(f"{param}: {quote(name)} is the name of an earlier tool", param=param)
        seen.add(name)


def check_parameters(parameters: Mapping[str, Any] | None, path: str) -> None:
    """Raises InvalidValue where `parameters` cannot be the schema of an object: models and parsers need its members."""
    if parameters is None:
        return
    kind = parameters.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise InvalidValue(f"{path}.type: arguments are an object", param=f"{path}.type")
    properties = parameters.get("properties", {})
    if not isinstance(properties, Mapping):
        raise InvalidValue(f"{path}.properties: must be an object", param=f"{path}.properties")
    for name, schema in properties.items():
        if not isinstance(schema, Mapping | bool):
            param = f"{path}.properties.{name[:64]}"
            raise InvalidValue(f"{path}.properties: {quote(name)} has no schema", param=param)
    required = parameters.get("required", [])
    if not (isinstance(required, list) and all(isinstance(name, str) for name in required)):
        raise InvalidValue(f"{path}.required: must be a list of names", param=f"{path}.required")


def check_tool_choice(choice: ToolChoice, tools: Sequence[Tool]) -> None:
    """Raises InvalidValue for a choice that the offered tools cannot meet. `none` and `auto` always can."""
    if choice in ("none", "auto"):
        return
    if not tools:
        raise InvalidValue("tool_choice: there are no tools to choose from", param="tool_choice")
    if isinstance(choice, str):
        return
    offered = {identity(tool) for tool in tools}
    named = choice.allowed_tools.tools if isinstance(choice, AllowedToolsChoice) else [choice]
    for tool in named:
        wanted = ("function", tool.function.name) if isinstance(tool, FunctionChoice) else ("custom", tool.custom.name)
        if wanted not in offered:
            raise InvalidValue(f"tool_choice: {quote(wanted[1])} is not among the tools", param="tool_choice")


def identity(tool: Tool) -> tuple[str, str]:
    """Returns the kind and the name of a tool."""
    return ("custom", tool.custom.name) if isinstance(tool, CustomTool) else ("function", tool.function.name)


def check_deprecated(request: ChatRequest, policy: RequestPolicy) -> None:
    """Raises InvalidValue for broken `functions`, and for a request that mixes them with `tools`."""
    if request.functions and request.tools:
        raise InvalidValue("functions: excludes tools, which replace it", param="functions")
    check_functions(request.functions or [], policy)


def check_function_call(request: ChatRequest) -> None:
    """Raises InvalidValue for a deprecated choice that the offered functions cannot meet."""
    choice = request.function_call
    if not isinstance(choice, ToolName):
        return
    if choice.name not in {function.name for function in request.functions or []}:
        message = f"function_call: {quote(choice.name)} is not among the functions"
        raise InvalidValue(message, param="function_call")
