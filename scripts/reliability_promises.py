"""What docs/reliability.md says of each requirement, except the tests: those are read off the tests themselves.

A promise is a sentence of ours; where CONTRACT.md gives a number, that number holds. `note` is a figure and where it
was measured, or what the promise leaves out. `why_not` says why nothing is to be proven yet.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    text: str
    note: str = ""
    why_not: str = ""


NO_MEDIA = "nothing is decoded: media in messages is 422"

PROMISES: dict[str, Promise] = {
    # Idempotency
    "IDEM-1": Promise("An idempotency key may stand on every POST that generates; without one nothing changes."),
    "IDEM-2": Promise(
        "The same key, caller, path and JSON get the recorded answer, byte for byte, and no second engine run."
    ),
    "IDEM-3": Promise("The same key with another body is 422 `idempotency_key_reuse`, and the engine hears nothing."),
    "IDEM-4": Promise(
        "While the first request runs, its key answers 409 with `Retry-After: 1`: of 50 equal ones at once, one runs."
    ),
    "IDEM-5": Promise("What was refused before it ran is not recorded: a retry runs."),
    "IDEM-6": Promise("A failure after the start that a retry may cure is not recorded either; what is, is published."),
    "IDEM-7": Promise("Keys of two callers never meet."),
    "IDEM-8": Promise('A key of a wrong shape is 400; `"abc"` and `abc` are one key.'),
    "IDEM-9": Promise(
        "Answers stay 24 hours; the ledger is bounded in entries and bytes, and what it does when full is published."
    ),
    "IDEM-10": Promise(
        "A finished stream is replayed as the same event bytes; a cancelled one never counts as success."
    ),
    # Overload
    "OVL-1": Promise("Running sequences, queued requests and queued tokens are bounded before the engine is touched."),
    "OVL-2": Promise(
        "Shedding is cheap: at five times capacity nearly all goodput stays, refusals are quick, memory is flat.",
        note="`bench/overload.py`, [performance](performance.md)",
    ),
    "OVL-3": Promise("A queued request that cannot meet its deadline leaves the queue with 504, without engine work."),
    "OVL-4": Promise("Nobody waits in the queue longer than `queue_deadline_ms`: then 503 `no_capacity`."),
    "OVL-5": Promise("A key with a hundred waiting requests does not starve a key with one."),
    "OVL-6": Promise("Health, readiness and metrics answer while everything is full."),
    "OVL-7": Promise("Retries are counted, and get no priority."),
    "OVL-8": Promise(
        "Everything that holds state has a bound, and a test pushes it past the bound.",
        note="[limits](limits.md); which test pushes which bound: `tests/harness/limit_proofs.py`",
    ),
    "OVL-9": Promise("When an overload ends, service is normal at once, without a restart."),
    # Deadlines
    "DL-1": Promise(
        "The effective deadline is the least of all that apply; when it passes, the client is told with 504."
    ),
    "DL-2": Promise("A client that goes frees everything, in each phase, with any number of choices and prompts."),
    "DL-3": Promise("A thousand connects and drops leave no request, task, block or descriptor behind."),
    "DL-4": Promise("An abort of what is not live touches nothing."),
    "DL-5": Promise("An engine that makes no step for `stall_timeout_s` is restarted, and its requests are told."),
    # Streams
    "SSE-1": Promise("Streams carry the headers that proxies need, no length, and are never compressed."),
    "SSE-2": Promise("An event is one `data:` line of JSON; no separator of lines stands raw inside it."),
    "SSE-3": Promise("Each choice finishes once; then usage where asked; then one `[DONE]`; then nothing."),
    "SSE-4": Promise("A failure after the status is one error event and a cut, never a clean end."),
    "SSE-5": Promise("A failure before the first token is an HTTP status."),
    "SSE-6": Promise("Heartbeats are comment lines, between events only, never before the status."),
    "SSE-7": Promise("No piece of text holds half a character."),
    "SSE-8": Promise(
        "A token leaves as soon as it is known; nothing is delayed to be joined.",
        note="no absolute time is asserted; cost of a token in [performance](performance.md)",
    ),
    "SSE-9": Promise("Concatenated pieces equal the whole reply; id, date and model are the same in every chunk."),
    # Slow and hostile peers
    "SLOW-1": Promise(
        "A reader that accepts nothing is cut off, and a hundred of them do not slow a healthy stream.",
        note="`bench/stuck_readers.py`, [performance](performance.md)",
    ),
    "SLOW-2": Promise("A stalled stream holds at most `unsent_bytes`; meanwhile the engine does not work on it."),
    "SLOW-3": Promise("Heads and bodies that trickle are cut off, and hundreds of them leave service normal."),
    "SLOW-4": Promise("Sizes of head, path, body and nesting are bounded before anything is parsed."),
    "SLOW-5": Promise("A body that ends early leaves no task, and no error of ours in the log."),
    "SLOW-6": Promise(
        "What is not clean HTTP/1.1 is refused and the connection closed; no second request is smuggled."
    ),
    # Errors, limits, life
    "ERR-1": Promise("Errors have one shape on every path that reaches the application."),
    "ERR-2": Promise("Each class of error has its status, and says whether a retry can help."),
    "ERR-3": Promise("Every response has `X-Request-Id`; the caller's is echoed when clean and never used as a key."),
    "ERR-4": Promise("No error shows a traceback, a file path, an address in memory or another caller's data."),
    "RL-1": Promise("Keys with quotas are told what is left, and when it comes back."),
    "LIFE-1": Promise("SIGTERM: not ready at once, new work 503, running work finishes or is told; exit 0."),
    "LIFE-2": Promise("An engine that is killed costs its requests an error at once, and comes back by itself."),
    "LIFE-3": Promise("Until the engine has answered once the server is alive, not ready, and says so."),
    "LIFE-4": Promise(
        "A long run with every kind of trouble leaks nothing and keeps the event loop free.",
        note="`bench/soak.py`, [performance](performance.md)",
    ),
    "ISO-1": Promise("No answer ever holds a word of another request."),
    # Advisories
    "SEC-1": Promise("Absurd counts are 400 before anything is allocated."),
    "SEC-2": Promise("Lists of prompts are bounded, and so is prompts times choices."),
    "SEC-3": Promise(
        "A pattern or schema that explodes is held to or refused within `grammar_compile_ms`, and holds up nobody else."
    ),
    "SEC-4": Promise("Deep nesting is 400 wherever it stands."),
    "SEC-5": Promise("Compiled grammars are cached within bounds of entries and bytes, in memory only."),
    "SEC-6": Promise("No schema, valid or broken, harms the engine: 200 or 400, and the next request is served."),
    "SEC-7": Promise("Templates of callers are refused; the model's own render within time and size."),
    "SEC-8": Promise("Templates run in a sandbox that gives no attribute away."),
    "SEC-9": Promise("Who may call is decided from the raw path alone; `Host` changes nothing."),
    "SEC-10": Promise("Every route and spelling needs a key once there are keys, except the open ones."),
    "SEC-11": Promise("Keys are compared by digest in constant time."),
    "SEC-12": Promise("No URL in a message is ever fetched.", note=NO_MEDIA),
    "SEC-13": Promise("No path in a message is ever opened.", note=NO_MEDIA),
    "SEC-14": Promise("A broken image gives no address away.", why_not=NO_MEDIA),
    "SEC-15": Promise("No image or sound unpacks to more than is allowed.", why_not=NO_MEDIA),
    "SEC-16": Promise("Nothing of a request reaches an unpickler; embeddings as prompts do not exist."),
    "SEC-17": Promise("Processes talk in msgpack over private Unix sockets; only the configured ports listen."),
    "SEC-18": Promise("Ids outside the vocabulary are 400; no parameter of one request touches another's."),
    "SEC-19": Promise("Two live requests may share a name; names that are not clean are replaced."),
    "SEC-20": Promise("Labels of callers are bounded in length and characters."),
    "SEC-21": Promise(
        "No caller can time another's prompts through a cache.",
        note="prompts are shared between choices of one request only",
    ),
    "SEC-22": Promise("Unknown fields follow one policy and are never passed on."),
    "SEC-23": Promise("Sampling parameters at and beyond their bounds leave the engine alive."),
    "SEC-24": Promise("Absurd integers are 400; requests during start, drain and restart crash nothing."),
    "SEC-25": Promise("A `Range` header costs nothing.", note="no files are served, and no web framework is used"),
    "SEC-26": Promise(
        "Parsing of model text is linear in its length.", why_not="no tool or reasoning format is parsed yet"
    ),
    "SEC-27": Promise("A huge header is 431."),
    "SEC-28": Promise("Text that spells a control token stays text."),
    "SEC-29": Promise("Logs are one JSON line a record, without prompts and keys, whatever callers send."),
    "SEC-30": Promise("Few dependencies, all locked with hashes; one without is a failed build."),
}
