"""Whether the served model's output can be held to grammars, by whom, and why not."""

from dataclasses import dataclass

from tidegate.inference.model_info import ModelInfo

NOT_CHOSEN = "constrained output is off: grammar.backend is none"
NOT_IN_ENGINE = "the engine does not enforce grammars"


@dataclass(frozen=True, slots=True)
class ServedGrammar:
    """Fixed for the life of the server. `identity` is the backend with its version; None where there is none.

    `reason` says why there is none, for callers. `is_required`: the server would not have started without one.
    """

    identity: str | None = None
    is_required: bool = False
    reason: str = NOT_CHOSEN

    @property
    def backend(self) -> str | None:
        """The backend's name, without its version."""
        return None if self.identity is None else self.identity.partition(" ")[0]

    def unserved_reason(self, info: ModelInfo | None, *, is_scripted: bool) -> str | None:
        """Returns why constraints are refused; None where they are served.

        The scripted engine plays its script whatever the constraint, which is compiled and checked all the same.
        """
        if self.identity is None:
            return self.reason
        if is_scripted or info is None or info.grammar_backend is not None:
            return None
        return NOT_IN_ENGINE


NO_GRAMMAR = ServedGrammar()
