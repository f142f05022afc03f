"""What `tidegate serve` says to a person: what is being loaded, and how to talk to the server once it is ready."""

import json

from tidegate.cli.inner_engine import inner_settings, is_on_ray
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_settings import is_remote, reads_folder
from tidegate.cli.settings import Settings
from tidegate.cli.speculation_text import sameness_text, speculation_text
from tidegate.inference.model_info import ModelInfo
from tidegate.serving.output_formats import OutputFormats


def starting_text(settings: Settings, loaded: LoadedModel, *, num_engines: int = 1) -> str:
    """Returns what is starting, and one line each for the formats of its tool calls and its reasoning,
    and for guesses that may change its text."""
    guesses = speculation_text(settings)
    extra = (f", {guesses}" if guesses else "") + (f", on {num_engines} engines" if num_engines > 1 else "")
    extra += " on Ray" if is_on_ray(settings) else ""
    settings = inner_settings(settings)
    if loaded.source is None:
        doing = f"looking for the {settings.engine.kind} engine at {settings.engine.url}"
        what = f"tidegate: {doing if is_remote(settings) else f'starting the {settings.engine.kind} engine{extra}'}"
    else:
        size_mb = loaded.source.path.stat().st_size / 1e6
        what = f"tidegate: loading {loaded.served.name} ({size_mb:.0f} MB, {loaded.source.origin}){extra}"
    formats = describe_formats(loaded.served.formats)
    lines = [what, *(f"tidegate: {subject}: {words}" for subject, words in formats.items())]
    warned = sameness_text(settings)
    return "\n".join([*lines, f"tidegate: {warned}"] if warned else lines)


def describe_formats(formats: OutputFormats) -> dict[str, str]:
    """Returns how the model writes tool calls and reasoning, and why that is believed."""
    own = "" if formats.tool is not None or formats.tool_name is None else "for models without a format of their own; "
    return {
        "tool calls": f"{formats.tool_name or 'none'} ({own}{formats.tool_why})",
        "reasoning": f"{formats.reasoning_name or 'none'} ({formats.reasoning_why})",
    }


def grammar_text(loaded: LoadedModel) -> str:
    """Returns one line: who enforces schemas and grammars."""
    served = loaded.grammar.served
    return f"tidegate: structured output by {served.identity}" if served.identity else f"tidegate: {served.reason}"


def memory_text(model: ModelInfo | None) -> str | None:
    """Returns the engine's budget of memory; None where it has none."""
    if model is None or model.memory is None:
        return None
    return "\n".join(["tidegate: memory of the engine", *(f"  {line}" for line in model.memory.splitlines())])


def ready_text(
    settings: Settings,
    loaded: LoadedModel,
    url: str,
    admin_url: str,
    *,
    needs_key: bool = False,
    model: ModelInfo | None = None,
) -> str:
    """Returns the ready line, the addresses, and a `curl` line that works when pasted; with a key, once KEY is set.

    `model` is what the engine says of itself: one that only reads is asked for an embedding, or for a class.
    """
    key = ' -H "Authorization: Bearer $KEY"' if needs_key else ""
    path, body = _example(settings, loaded, model)
    text = json.dumps(body).replace("'", "'\\''")
    return "\n".join(
        (
            f"tidegate: ready on {url} (admin on {admin_url}); try",
            f"  curl -N {url}{path} -H 'Content-Type: application/json'{key} -d '{text}'",
        )
    )


def _example(settings: Settings, loaded: LoadedModel, model: ModelInfo | None) -> tuple[str, dict[str, object]]:
    """Returns a route that the model serves, and a body for it."""
    if model is not None and not model.generates and model.pooling is not None:
        path = "/v1/classify" if model.pooling.labels else "/v1/embeddings"
        return path, {"model": loaded.served.name, "input": "The sea is salty."}
    body: dict[str, object] = {
        "model": loaded.served.name,
        "messages": [{"role": "user", "content": "Why is the sea salty?"}],
        "stream": True,
    }
    settings = inner_settings(settings)
    if settings.engine.kind == "scripted":
        body["x_script"] = {"pieces": ["48656c6c6f", "2c20", "736561"]}
    elif settings.engine.kind == "llama" or reads_folder(settings):
        body["max_tokens"] = 64
    else:
        body["max_tokens"] = 8
    return "/v1/chat/completions", body
