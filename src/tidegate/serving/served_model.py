"""What is served under one name: how text becomes tokens and back, and which engine runs it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.contract.bounds import Limits
from tidegate.errors import ModelNotAllowed, ModelNotFound
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.principal import Principal
from tidegate.serving.output_formats import NO_FORMATS, OutputFormats
from tidegate.serving.output_reading import ControlTokens, control_ids, token_ids_of
from tidegate.serving.served_grammar import NO_GRAMMAR, ServedGrammar
from tidegate.text.chat_template import ChatTemplates
from tidegate.text.vocabulary import Tokenizer

_PROBE = "A  a \t b"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Fixed for the life of the server. `names[0]` is the one that answers carry; `created` is in seconds since the
    epoch. `tokenizer_digest` and `template_digest` are parts of the revision.
    """

    names: tuple[str, ...]
    tokenizer: Tokenizer
    templates: ChatTemplates
    tokenizer_digest: str
    template_digest: str
    limits: Limits
    created: int
    is_scripted: bool
    longest_token_bytes: int
    formats: OutputFormats = NO_FORMATS
    grammar: ServedGrammar = NO_GRAMMAR
    pair_separator: tuple[int, ...] = ()
    """Tokens between two texts that are read as one, beside what the tokenizer adds to each."""
    min_dimensions: int | None = None
    """The fewest components that an embedding may be cut to; None where it may not be cut."""
    controls: ControlTokens = field(init=False)
    keeps_text: bool = field(init=False)
    """Whether tokens stand for every character of a text, case and blanks included."""
    reasoning_ends: Mapping[str, int] = field(init=False)
    """The closing markers of reasoning that are one token each, by their spelling."""
    text_memo: dict[bool, dict[int, str]] = field(default_factory=lambda: {True: {}, False: {}})
    """The texts of tokens that are whole characters, shared by all detokenizers, by whether control tokens show."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "controls", ControlTokens(control_ids(self.tokenizer.vocabulary)))
        probe = self.tokenizer.encode(_PROBE, add_special=False, parse_special=False)
        object.__setattr__(self, "keeps_text", self.tokenizer.decode(probe) == _PROBE)
        markers = self.formats.reasoning
        closes = frozenset() if markers is None else frozenset(markers.closes)
        ends = {**token_ids_of(self.tokenizer.vocabulary, closes), **self.controls.ids}
        object.__setattr__(self, "reasoning_ends", {text: ends[text] for text in closes & ends.keys()})

    def revision(self, info: ModelInfo) -> str:
        """Returns the execution identity: a hex digest over weights, tokenizer, chat template, formats, grammar backend
        and engine build.
        """
        parts = (
            info.weights_digest,
            self.tokenizer_digest,
            self.template_digest,
            self.formats.tool_name or "",
            self.formats.reasoning_name or "",
            self.grammar_backend(info) or "",
            info.build,
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    @property
    def shows_tools(self) -> bool:
        """Whether the model can be shown tools: by its chat template, or by a system message."""
        capabilities = self.templates.select(has_tools=True).capabilities
        return capabilities.supports_tools or capabilities.supports_system

    def grammar_reason(self, info: ModelInfo | None) -> str | None:
        """Returns why constrained output is not served; None where it is, or may be once the engine has started."""
        return self.grammar.unserved_reason(info, is_scripted=self.is_scripted)

    def grammar_backend(self, info: ModelInfo | None) -> str | None:
        """Returns who enforces grammars, with its version; None for nobody."""
        return self.grammar.identity if self.grammar_reason(info) is None else None

    @property
    def name(self) -> str:
        return self.names[0]

    def names_for(self, principal: Principal) -> tuple[str, ...]:
        """Returns the names that a caller may use."""
        allowed = principal.models
        return self.names if allowed is None else tuple(name for name in self.names if name in allowed)

    def check_name(self, name: str | None, principal: Principal) -> str:
        """Returns the name that the answer carries, for a caller who asks for `name`, or for none.

        Raises ModelNotFound, and ModelNotAllowed for a model that is served, but not to this caller.
        """
        if name is not None and name not in self.names:
            raise ModelNotFound(f"The model {name[:64]!r} does not exist.", param="model")
        allowed = self.names_for(principal)
        if not allowed or (name is not None and name not in allowed):
            raise ModelNotAllowed(f"This key may not use the model {(name or self.name)[:64]!r}.", param="model")
        return allowed[0] if name is None else name
