"""Token counts of one call, kept whether or not anybody asks for them (CONTRACT.md section 13)."""

from dataclasses import dataclass

from tidegate.contract.reading import ReadUsage
from tidegate.contract.usage import CompletionTokensDetails, PromptTokensDetails, Usage


@dataclass(slots=True)
class TokenCounts:
    """`num_prompt` counts each prompt once, whatever the number of choices; `num_completion` sums over choices."""

    num_prompt: int = 0
    num_cached: int = 0
    num_completion: int = 0
    num_reasoning: int = 0

    def to_wire(self) -> Usage:
        return Usage(
            prompt_tokens=self.num_prompt,
            completion_tokens=self.num_completion,
            total_tokens=self.num_prompt + self.num_completion,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=self.num_cached),
            completion_tokens_details=CompletionTokensDetails(reasoning_tokens=self.num_reasoning),
        )

    def to_read_wire(self) -> ReadUsage:
        """The accounts of a call of which nothing is generated."""
        return ReadUsage(
            prompt_tokens=self.num_prompt,
            total_tokens=self.num_prompt,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=self.num_cached),
        )
