"""From settings to a `ServedModel`: which tokenizer and chat template, by the kind of engine."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate.cli.engine_specs import SpecError, model_specs
from tidegate.cli.grammar_loading import NOT_LOADED, GrammarUnusable, LoadedGrammar, load_grammar
from tidegate.cli.inner_engine import inner_settings, is_on_ray
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_source import Hub, ModelSource, find_model
from tidegate.cli.model_source_error import ModelSourceError
from tidegate.cli.remote_settings import is_remote, is_vllm
from tidegate.cli.settings import LimitSettings, Settings
from tidegate.contract.bounds import Limits
from tidegate.inference.model_info import ModelInfo
from tidegate.serving.model_tasks import embedding_reason
from tidegate.serving.output_formats import UnknownFormat, choose_formats, view_templates
from tidegate.serving.served_grammar import NOT_IN_ENGINE
from tidegate.serving.served_model import ServedModel
from tidegate.system import SystemClock
from tidegate.text.byte_tokenizer import BOS_TOKEN, EOS_TOKEN, EOS_TOKEN_ID, ByteTokenizer
from tidegate.text.chat_template import ChatTemplates
from tidegate.text.template_budget import RenderLimits
from tidegate.text.template_env import BrokenTemplate
from tidegate.text.vocabulary import ModelFacts, Tokenizer

CONTENTS_TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
"""What the scripted and the simulated engine read: the contents, and nothing around them."""


class FormatError(LoadError):
    """A setting names a format of tool calls or of reasoning that cannot be served."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """`source` is None for engines without a model file."""

    served: ServedModel
    source: ModelSource | None
    grammar: LoadedGrammar = NOT_LOADED


def load_model(settings: Settings, hub: Hub | None = None) -> LoadedModel:
    """Reads tokenizer and template; fetches the model if need be, from `hub` or Hugging Face. Raises LoadError."""
    is_here = not is_on_ray(settings)
    settings = inner_settings(settings)
    if settings.engine.kind == "llama":
        try:
            source = find_model(settings.model.source, hub)
        except ModelSourceError as error:
            raise LoadError(str(error)) from error
        return _with_grammar(settings, _load_gguf(settings, source), source)
    if is_remote(settings):
        return _load_remote(settings)
    if is_vllm(settings):
        return _load_vllm(settings, hub, is_here=is_here)
    tokenizer = ByteTokenizer()
    facts = ModelFacts(
        "byte-tokenizer-1", {"default": CONTENTS_TEMPLATE}, BOS_TOKEN, EOS_TOKEN, pair_separator=(EOS_TOKEN_ID,)
    )
    name = settings.model.source or settings.engine.kind
    return _with_grammar(settings, _serve(settings, tokenizer, facts, (name,)), None)


def load_models(settings: Settings, hub: Hub | None = None) -> tuple[LoadedModel, ...]:
    """Reads each model of the settings. Raises LoadError, also for engines and models that do not go together."""
    try:
        loaded = tuple(load_model(spec.settings, hub) for spec in model_specs(settings))
    except SpecError as error:
        raise LoadError(str(error)) from None
    names = [name for model in loaded for name in model.served.names]
    for name in names:
        if names.count(name) > 1:
            raise LoadError(f"The name {name} stands for two models: give each a served_model_name of its own.")
    return loaded


def _load_remote(settings: Settings) -> LoadedModel:
    """The engine runs elsewhere: of the model only the tokenizer's folder is here."""
    from tidegate.cli.remote_engine import load_tokenizer, remote_endpoint

    remote_endpoint(settings)
    tokenizer, facts, name = load_tokenizer(settings)
    return _with_grammar(settings, _serve(settings, tokenizer, facts, (name,)), None)


def _load_vllm(settings: Settings, hub: Hub | None, *, is_here: bool) -> LoadedModel:
    """vLLM reads the weights; tokenizer and template are read here."""
    from tidegate.cli.vllm_engine import load_folder

    tokenizer, facts, name = load_folder(settings, hub, is_here=is_here)
    return _with_grammar(settings, _serve(settings, tokenizer, facts, (name,)), None)


def _with_grammar(settings: Settings, served: ServedModel, source: ModelSource | None) -> LoadedModel:
    try:
        grammar = load_grammar(settings.grammar, served.tokenizer.vocabulary)
    except GrammarUnusable as error:
        raise LoadError(str(error)) from None
    return LoadedModel(replace(served, grammar=grammar.served), source, grammar)


def engine_fault(loaded: LoadedModel, info: ModelInfo | None) -> str | None:
    """Returns what keeps a started engine from serving what the settings require, and what to do; None if nothing."""
    served = loaded.served
    if served.grammar.is_required and served.grammar_reason(info) is not None:
        return (
            f"{NOT_IN_ENGINE[0].upper()}{NOT_IN_ENGINE[1:]}, and grammar.required is set. Choose another engine or "
            "another grammar.backend, or set grammar.required to false to serve without structured output."
        )
    fewest = served.min_dimensions
    if fewest is not None and info is not None and embedding_reason(info) is None and info.pooling is not None:
        native = info.pooling.dimensions
        if fewest > native:
            return (
                f"model.min_dimensions is {fewest}, but the served model's vectors have {native} components. Lower it, "
                "or leave it out so that vectors are never cut."
            )
    return None


def _load_gguf(settings: Settings, source: ModelSource) -> ServedModel:
    from tidegate.text.gguf_tokenizer import GgufTokenizer, UnusableModelFile

    try:
        tokenizer = GgufTokenizer(str(source.path))
    except UnusableModelFile as error:
        raise LoadError(f"{source.path} cannot be served: {error}.") from None
    return _serve(settings, tokenizer, tokenizer.facts, (source.name,))


def _serve(settings: Settings, tokenizer: Tokenizer, facts: ModelFacts, names: tuple[str, ...]) -> ServedModel:
    sources = facts.chat_templates
    if settings.model.chat_template is not None:
        sources = {"default": _read_template(Path(settings.model.chat_template))}
    clock = SystemClock()
    limits = RenderLimits(settings.limits.template_bytes, settings.limits.template_ms, clock.now)
    try:
        templates = ChatTemplates.compile(
            sources,
            limits=limits,
            bos_token=facts.bos_token,
            eos_token=facts.eos_token,
            control_spellings=tokenizer.control_spellings,
        )
    except BrokenTemplate as error:
        raise LoadError(f"The chat template cannot be used: {error}. Give another one with --chat-template.") from None
    try:
        formats = choose_formats(
            view_templates(sources.values(), templates),
            tool_setting=settings.model.tool_format,
            reasoning_setting=settings.model.reasoning_format,
            reasoning_field=settings.api.reasoning_field,
        )
    except UnknownFormat as error:
        raise FormatError(str(error)) from None
    vocabulary = tokenizer.vocabulary
    longest = max(len(vocabulary.token_bytes(token_id)) for token_id in range(vocabulary.size))
    return ServedModel(
        names=settings.model.served_model_name or names,
        tokenizer=tokenizer,
        templates=templates,
        tokenizer_digest=facts.digest,
        template_digest=_digest(sources),
        limits=_limits(settings.limits, settings.model.max_output_tokens),
        created=int(clock.wall()),
        is_scripted=settings.engine.kind == "scripted",
        longest_token_bytes=longest,
        formats=formats,
        pair_separator=facts.pair_separator,
        min_dimensions=settings.model.min_dimensions,
    )


def _digest(sources: Mapping[str, str]) -> str:
    """Identifies the templates: names and sources, each ended by a byte that no text has."""
    parts = (part.encode("utf-8", "replace") + b"\xff" for pair in sorted(sources.items()) for part in pair)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _read_template(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise LoadError(f"The chat template {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise LoadError(f"The chat template {file} is not UTF-8 text.") from None


def _limits(settings: LimitSettings, max_output_tokens: int | None) -> Limits:
    return Limits(
        body_bytes=settings.body_bytes,
        json_depth=settings.json_depth,
        messages=settings.messages,
        prompts=settings.prompts,
        choices=settings.choices,
        inputs=settings.inputs,
        schema_bytes=settings.schema_bytes,
        schema_depth=settings.schema_depth,
        max_output_tokens=max_output_tokens,
    )
