"""What keeps a model to its tools: forced calls, strict arguments, and either a call or an answer in a given shape.

Makes the grammar where the request needs one; that calls end after the first one is the choice's affair, and needs
none. Whether the grammar can be enforced is found out later, and laid to the field that this names.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tidegate.inference.grammar_parts import AlternativesPart, CompositeSpec, GrammarPart
from tidegate.parsers.tool_format import ToolFormat
from tidegate.parsers.tool_grammar import GrammarTool, MarkerTokens, tool_grammar
from tidegate.serving.answer_part import answer_part
from tidegate.serving.constraint import Constraint, in_schema
from tidegate.serving.tool_use import ToolUse

_ANSWER = "answer"


def needs_grammar(use: ToolUse, answer: Constraint | None) -> str | None:
    """Returns the member of the request that needs a grammar for its tools, None where none does."""
    if use.enforced_place is not None or answer is None or not use.callable:
        return use.enforced_place
    return answer.param


def tool_constraint(
    use: ToolUse, form: ToolFormat, tokens: MarkerTokens, answer: Constraint | None
) -> Constraint | None:
    """Returns what the output is held to, with `answer` for content; None where it is free.

    An answer beside tools that need not be called: the output is calls, or that answer.
    """
    place = needs_grammar(use, answer)
    if place is None:
        return answer
    has_choice = answer is not None and use.must_place is None
    tools = [tool.to_grammar() for tool in use.callable]
    if has_choice:
        tools = [_loosened(tool) for tool in tools]
    spec = tool_grammar(
        form, tools, tokens, is_required=use.must_place is not None or has_choice, allows_many=use.allows_many
    )
    if spec is None:
        return answer
    schemas = {tool.place: tool.schema for tool in tools if tool.schema is not None}
    if answer is None or not has_choice:
        return Constraint(spec, place, _locate(schemas, place))
    return Constraint(_either(spec, answer_part(answer, _ANSWER)), answer.param, _locate_either(schemas, answer))


def _either(spec: CompositeSpec, other: GrammarPart) -> CompositeSpec:
    """Returns a grammar for what `spec` says, or `other`."""
    return CompositeSpec(AlternativesPart((spec.root, other)), spec.rules)


def _loosened(tool: GrammarTool) -> GrammarTool:
    """A grammar that forces calls holds all of them to their schemas; here only strict ones are to be held."""
    return tool if tool.is_strict else replace(tool, schema=None)


def _locate_either(schemas: Mapping[str, bytes], answer: Constraint) -> Callable[[str], str]:
    in_tools = _locate(schemas, answer.param)

    def locate(path: str) -> str:
        if any(path == place or path.startswith(f"{place}/") for place in schemas):
            return in_tools(path)
        return answer.locate(path.removeprefix(_ANSWER))

    return locate


def _locate(schemas: Mapping[str, bytes], place: str) -> Callable[[str], str]:
    """Returns what turns a refusal's path, a place with a JSON pointer behind it, into the path in the body."""

    def locate(path: str) -> str:
        for one, schema in schemas.items():
            if path == one or path.startswith(f"{one}/"):
                return in_schema(one, schema)(path[len(one) :])
        return path.partition("/")[0] or place

    return locate
