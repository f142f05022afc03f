"""Sampling fields and their limits as JSON texts: what is served, and what is refused with 400 (CONTRACT.md 4)."""

from dataclasses import dataclass

NOT_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e400", '"1"', '""', "true", "false", "[]", "{}")
NOT_INTEGERS = (*NOT_NUMBERS, "0.5", "1.5", "-1.5", "1e30")
HUGE_INTEGERS = ("9007199254740993", "9223372036854775808", "-9223372036854775809", "1" + "0" * 30, "-1" + "0" * 30)
VOCABULARY = 258
"""The simulated engine's."""


@dataclass(frozen=True, slots=True)
class Field:
    """`good` and `bad` are JSON texts; `beside` are members that the field needs to be meaningful."""

    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    is_chat: bool = True
    beside: str = ""


def number(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> Field:
    return Field(name, good, (*bad, *NOT_NUMBERS))


def integer(name: str, good: tuple[str, ...], bad: tuple[str, ...], *, is_chat: bool = True, beside: str = "") -> Field:
    return Field(name, good, (*bad, *HUGE_INTEGERS, *NOT_INTEGERS), is_chat, beside)


def token_list(name: str, good: tuple[str, ...], bad: tuple[str, ...] = ()) -> Field:
    wrong = ("[-1]", "[258]", "[4294967296]", "[1" + "0" * 30 + "]", "[1.5]", '["1"]', "[true]", "[null]", "[NaN]")
    return Field(name, good, (*bad, *wrong, '"1"', "1", "true", "{}"))


def _many(entry: str, count: int, brackets: str = "[]") -> str:
    entries = ",".join(entry.replace("#", str(index % VOCABULARY)) for index in range(count))
    return brackets[0] + entries + brackets[1]


def _biases(count: int) -> str:
    return "{" + ",".join(f'"{index}":1' for index in range(count)) + "}"


NUMBERS = (
    number("temperature", ("0", "2", "2.0", "5e-324", "0.7"), ("-0.0001", "2.0001", "-1")),
    number("top_p", ("1", "5e-324", "0.5"), ("0", "1.0001", "-0.1")),
    number("min_p", ("0", "1", "0.5"), ("-0.0001", "1.0001")),
    number("presence_penalty", ("-2", "2", "0"), ("-2.0001", "2.0001")),
    number("frequency_penalty", ("-2", "2", "0"), ("-2.0001", "2.0001")),
    number("repetition_penalty", ("2", "5e-324", "1"), ("0", "-1", "2.0001")),
)
INTEGERS = (
    integer("top_k", ("-1", "0", "1", "258", "9007199254740991"), ("-2",)),
    integer("n", ("1", "2", "128"), ("0", "-1", "129", "1000000000")),
    Field(
        "seed",
        ("0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993"),
        (*HUGE_INTEGERS[1:], *NOT_INTEGERS),
    ),
    integer("max_tokens", ("1", "4"), ("0", "-1", "1000000")),
    integer("max_completion_tokens", ("1", "4"), ("0", "-1", "1000000")),
    integer("min_tokens", ("0", "1", "4"), ("-1", "5")),
    integer("priority", ("-100", "100", "0"), ("-101", "101")),
    integer("top_logprobs", ("0", "20"), ("-1", "21"), beside='"logprobs": true, '),
    integer("logprobs", ("0", "5"), ("-1", "6"), is_chat=False),
    integer("prompt_logprobs", ("0", "20"), ("-1", "21")),
    integer("best_of", ("1",), ("0", "-1", "21"), is_chat=False),
)
LISTS = (
    token_list("stop_token_ids", ("[]", "[0]", "[257]", _many("#", 300))),
    token_list("allowed_token_ids", ("[0]", "[257]", _many("#", 300)), ("[]",)),
    Field(
        "stop", ("[]", '"b"', '["a","b","c","d"]'), ('""', '[""]', '["a","b","c","d","e"]', "1", "[1]", "{}", "[null]")
    ),
    Field(
        "bad_words", ("[]", '["b"]', '["😀", " b"]', _many('"w#"', 1024)), ('[""]', '"b"', "[1]", _many('"w"', 1025))
    ),
    Field(
        "logit_bias",
        ("{}", '{"0": -100}', '{"257": 100}', '{"5": 0.5}', _biases(VOCABULARY)),
        (
            *('{"258": 1}', '{"-1": 1}', '{"01": 1}', '{"1e1": 1}', '{"": 1}', '{" 1": 1}', '{"x": 1}', '{"١": 1}'),
            *(
                '{"5": 100.5}',
                '{"5": -100.5}',
                '{"5": "1"}',
                '{"5": true}',
                '{"5": null}',
                '{"5": NaN}',
                '{"5": 1e308}',
            ),
            *('{"4294967296": 1}', _biases(1025), "[]", '"x"', "1"),
        ),
    ),
)
FLAGS = (
    *(
        Field(name, ("true", "false"), ('"true"', "1", "0", "[]", "{}", "NaN"))
        for name in ("ignore_eos", "include_stop_str_in_output", "skip_special_tokens", "return_token_ids", "stream")
    ),
    Field("logprobs", ("true", "false"), ("1", '"true"')),
    Field("echo", ("true", "false"), ("1", '"true"'), is_chat=False),
)
LABELS = (
    Field("cache_salt", ('"!~"', f'"{"s" * 256}"'), ('""', '" "', f'"{"s" * 257}"', '"é"', r'"\u0000"', r'"a\n"', "1")),
    Field("user", ('""', '"é 😀"', f'"{"u" * 512}"'), (f'"{"u" * 513}"', r'"\u0000"', r'"a\n"', r'"\u001b[0m"', "1")),
    Field("prompt_cache_key", ('"k"', f'"{"k" * 512}"'), (f'"{"k" * 513}"', r'"\u0000"', "1")),
    Field("safety_identifier", (f'"{"s" * 64}"',), (f'"{"s" * 65}"', r'"a\r"', "1")),
    Field(
        "metadata",
        ("{}", '{"a": "b"}', f'{{"{"k" * 64}": "{"v" * 512}"}}'),
        (f'{{"{"k" * 65}": "v"}}', f'{{"k": "{"v" * 513}"}}', _many('"k#": "v"', 17, "{}"), '{"a": 1}', "[]", '"x"'),
    ),
)
FIELDS = NUMBERS + INTEGERS + LISTS + FLAGS + LABELS
