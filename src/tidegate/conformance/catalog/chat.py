"""Chat completions as a whole."""

from tidegate.conformance.ask import Ask
from tidegate.conformance.capability import Capability
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.checks.body import has_value
from tidegate.conformance.checks.status import has_status

CASES: tuple[Case, ...] = (
    Case(
        id="chat.object",
        title="A chat completion says that it is one",
        why="Typed clients tell answers apart by `object`.",
        clauses=("openai:chat.object",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body()),),
        expects=(
            expect(has_status, allowed=(200,)),
            expect(has_value, path=("object",), value="chat.completion"),
        ),
    ),
)
