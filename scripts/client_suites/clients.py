"""The clients whose suites and scenarios are run, and how each is run.

An exception names tests that must fail, with the reason. It is for what the contract refuses, or what the client's own
suite gets wrong; never for a fault of the server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Client:
    """`package`: whose version the table shows. `scenario`: the file that is run, under this folder."""

    name: str
    package: str
    scenario: str
    options: tuple[str, ...] = ()
    exceptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_node(self) -> bool:
        return self.scenario.endswith(".mjs")


ONE_LOOP = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_test_loop_scope=session", "--benchmark-disable")
"""The asynchronous half of langchain-tests keeps one client for all its tests, so they must share an event loop."""

CLIENTS = (
    Client("langchain", "langchain-openai", "scenarios/langchain_suite.py", ONE_LOOP),
    Client("instructor", "instructor", "scenarios/instructor_scenarios.py"),
    Client("pydantic-ai", "pydantic-ai-slim", "scenarios/pydantic_ai_scenarios.py"),
    Client("openai-agents", "openai-agents", "scenarios/openai_agents_scenarios.py"),
    Client("llama-index", "llama-index-llms-openai-like", "scenarios/llama_index_scenarios.py"),
    Client("llm", "llm", "scenarios/llm_scenarios.py"),
    Client("ai-sdk", "ai", "ai_sdk/scenarios.mjs"),
)


def chosen(only: str) -> tuple[Client, ...]:
    """Returns the clients named in a list with commas; all of them for an empty one. Raises SystemExit for others."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = {client.name: client for client in CLIENTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no such client: {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else CLIENTS
