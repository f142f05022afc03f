"""Sessions from JSONL: bodies as they stand, and errors that name their line."""

import pytest

from tidegate.loadtest.session_file import SessionFileError, read_sessions

HELLO = '{"messages": [{"role": "user", "content": "hello"}]'


def test_lines_become_sessions_in_their_order() -> None:
    text = (
        f'{HELLO}, "top_p": 0.5, "stream": false, "model": "x", "group": "a"}}\n\n{{"prompt": "hi", "max_tokens": 3}}\n'
    )
    first, second = read_sessions(text, 64)
    assert first.group == "a"
    assert first.turns[0].max_tokens == 64
    assert first.turns[0].extra == {"top_p": 0.5}
    assert first.turns[0].messages == ({"role": "user", "content": "hello"},)
    assert (second.index, second.group, second.turns[0].prompt, second.turns[0].max_tokens) == (1, "all", "hi", 3)


def test_a_line_may_hold_several_turns_that_inherit_its_members() -> None:
    turn = '{"messages": [{"role": "user", "content": "x"}]}'
    (session,) = read_sessions(f'{{"turns": [{turn}, {turn}], "max_tokens": 5, "top_p": 1}}', 64)
    assert [turn.max_tokens for turn in session.turns] == [5, 5]
    assert session.turns[1].num_prompt_tokens > session.turns[0].num_prompt_tokens + 5
    assert session.turns[1].extra == {"top_p": 1}


def test_a_schema_of_the_line_is_held_against_its_answer() -> None:
    answer_format = (
        '"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "null"}}}'
    )
    (session,) = read_sessions(f"{HELLO}, {answer_format}}}", 64)
    assert session.turns[0].schema == {"type": "null"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line with a request"),
        ("{", "line 1: not JSON"),
        (f"{HELLO}}}\n[]", "line 2: not a JSON object"),
        ("{}", "line 1: needs either messages or prompt"),
        (f'{HELLO}, "prompt": "x"}}', "line 1: needs either"),
        ('{"prompt": 3}', "line 1: prompt is no text"),
        ('{"messages": "x"}', "line 1: messages is no list"),
        ('{"messages": [{"content": "x"}]}', "line 1: messages is no list of objects with a role"),
        ('{"prompt": "x", "max_tokens": 0}', "line 1: max_tokens is no positive"),
        ('{"prompt": "x", "max_tokens": true}', "line 1: max_tokens is no positive"),
        ('{"prompt": "x", "group": 1}', "line 1: group is no text"),
        ('{"turns": []}', "line 1: turns is no list"),
        ("[" * 100_000, "line 1: not JSON"),
    ],
    ids=[
        "empty",
        "not JSON",
        "a list",
        "neither",
        "both",
        "prompt",
        "messages",
        "no role",
        "no tokens",
        "a truth",
        "group",
        "no turns",
        "deep",
    ],
)
def test_what_is_no_load_is_refused_by_its_line(text: str, says: str) -> None:
    with pytest.raises(SessionFileError, match=says):
        read_sessions(text, 64)
