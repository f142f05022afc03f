"""What breaks chat completions as a whole."""

from harness.judged_case import Mutants
from harness.mutant import EditsValue

MUTANTS: Mutants = {
    "chat.object": (
        EditsValue("says that it is a text completion", lambda value: value | {"object": "text_completion"}),
    ),
}
