"""Tools that cases offer, and requests with them."""

from collections.abc import Mapping
from typing import Any

from tidegate.conformance.catalog.bodies import chat_body

QUESTION = "Pick a colour."
BUDGET = 200
"""Tokens for one short call, with all the blanks that a grammar may allow; a call that had to come ends long before."""


def closed(**properties: Any) -> dict[str, Any]:
    """Returns the schema of an object with exactly these members: what strict schemas of the public API look like."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def function_tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    """Returns a tool of type function; without parameters where they are None."""
    told = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", **told, **more}}


COLOUR_ARGUMENTS = closed(colour={"type": "string", "enum": ["red", "green", "blue"]})
COLOUR = function_tool("pick_colour", COLOUR_ARGUMENTS)
SIZE = function_tool("set_size", closed(size={"type": "integer", "minimum": 1, "maximum": 9}))
ONE_VALUE_ARGUMENTS = closed(colour={"type": "string", "enum": ["red"]})
ONE_VALUE = function_tool("pick_colour", ONE_VALUE_ARGUMENTS, strict=True)
"""Strict, and only one value keeps its schema, so two right answers are the same."""

RED = ("pick_colour", '{"colour": "red"}')
BLUE = ("pick_colour", '{"colour": "blue"}')
SEVEN = ("set_size", '{"size": 7}')


def named(name: str) -> Mapping[str, Any]:
    """Returns the `tool_choice` that forces a function."""
    return {"type": "function", "function": {"name": name}}


def tool_body(*tools: Any, text: str = QUESTION, **fields: Any) -> dict[str, Any]:
    """Returns a chat request that offers the tools; `pick_colour` where none is given."""
    return chat_body(text, **{"tools": list(tools or (COLOUR,)), "max_tokens": BUDGET, **fields})
