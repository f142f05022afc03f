"""Each case about what an answer says, and how it is streamed holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import chat, completions, stream, stream_framing

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("chat", "completions", "stream"),
    chat.MUTANTS,
    completions.MUTANTS,
    stream.MUTANTS,
    stream_framing.MUTANTS,
    bases={"stream.heartbeat": "restless"},
)
